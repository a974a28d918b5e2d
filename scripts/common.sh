# Read by the other scripts: messages, and apt where it may be used.

say() { echo "==> $*"; }

fail() {
    echo "error: $*" >&2
    exit 2
}

# Installs Debian packages as root or by sudo without a password; returns 1 where neither is.
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
    output=$(
        {
            $as_root apt-get update -qq &&
                $as_root env DEBIAN_FRONTEND=noninteractive \
                    apt-get install -y -qq --no-install-recommends "$@"
        } 2>&1 </dev/null
    ) || {
        echo "$output" | tail -n 5 >&2
        return 1
    }
}
