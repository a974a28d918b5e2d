#!/bin/sh
# Makes a virtual environment and installs pinned packages into it, and nothing else.
#
#   sh scripts/venv.sh FOLDER REQUIREMENTS...
#
# PYTHON names the interpreter; otherwise the first of python3, python3.13, ... python3.11 that is
# 3.11 or newer. Where Debian's venv module is missing it is installed with apt by root (or by sudo
# without a password); anybody else is told what to install.
set -eu
. "$(dirname "$0")/common.sh"

folder=$1
shift

suitable() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
        if command -v "$candidate" >/dev/null && suitable "$candidate"; then
            echo "$candidate"
            return
        fi
    done
}

make_venv() {
    python=$(find_python)
    if [ -z "$python" ]; then
        apt_install python3 python3-venv || true
        python=$(find_python)
    fi
    [ -n "$python" ] || fail "no Python 3.11 or newer; install it (apt-get install python3 python3-venv) or name it: PYTHON=/path/to/python3"
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        apt_install "python$version-venv" || true
        "$python" -c 'import ensurepip, venv' 2>/dev/null ||
            fail "$python lacks its venv module; as root: apt-get install python$version-venv"
    fi
    say "$folder: a virtual environment of $("$python" --version)"
    "$python" -m venv --clear "$folder"
}

# pip's wall of text goes to a log; one line a quarter of the packages is shown.
install() {
    log=$folder/install.log
    status=$folder/install.status
    count=$(cat "$@" | grep -c '==')
    options=
    for file in "$@"; do options="$options -r $file"; done
    say "$folder: $count pinned packages ($(basename -a "$@" | xargs))"
    {
        code=0
        # Without dependencies: only what is pinned is ever installed.
        # shellcheck disable=SC2086
        "$folder/bin/python" -m pip install --no-deps --no-build-isolation --no-input \
            --disable-pip-version-check --progress-bar off $options 2>&1 || code=$?
        echo "$code" >"$status"
    } | tee "$log" | awk -v count="$count" -v where="$folder" '
        /^(Collecting|Requirement already satisfied)/ {
            seen++
            if (seen % int(count / 4 + 1) == 0) print "==> " where ": " seen " of " count " fetched"
        }
        /^Building wheels/ { print "==> " where ": building pyspark (once a machine)" }
        /^Installing collected/ { print "==> " where ": unpacking" }
        { fflush() }'
    if [ "$(cat "$status")" != 0 ]; then
        tail -n 20 "$log" >&2
        fail "the packages of $* could not be installed; the whole log: $log"
    fi
}

if ! "$folder/bin/python" -c 'import pip' 2>/dev/null || ! suitable "$folder/bin/python"; then
    make_venv
fi
for file in "$@"; do install "$file"; done

# The wheel of LightGBM takes GNU's OpenMP from the system, and a bare Debian has none.
has_openmp() {
    "$folder/bin/python" -c 'import ctypes; ctypes.CDLL("libgomp.so.1")' 2>/dev/null
}

if grep -q '^lightgbm==' "$@" && ! has_openmp; then
    apt_install libgomp1 || true
    has_openmp || say "boosting and linking will not run without libgomp; as root: apt-get install libgomp1"
fi
