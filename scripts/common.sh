# Read by the other scripts: messages, and apt where it may be used.

say() { echo "==> $*"; }

fail() {
    echo "error: $*" >&2
    exit 2
}

# Installs Debian packages as root or by sudo without a password; fails quietly where neither is.
apt_install() {
    command -v apt-get >/dev/null || return 1
    if [ "$(id -u)" = 0 ]; then
        as_root=
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        as_root="sudo -n"
    else
        return 1
    fi
    say "apt-get install $*"
    $as_root apt-get update -qq </dev/null >/dev/null || return 1
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" \
        </dev/null >/dev/null
}
