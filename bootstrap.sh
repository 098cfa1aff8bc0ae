#!/bin/sh
# From a bare Debian 12 or Ubuntu 24.04 with nothing but git to a running Hearth:
#
#   sh bootstrap.sh demo     build, serve a model, replay recorded agent turns, print the report
#   sh bootstrap.sh check    build and run every test
#
# Installs what is missing with apt (it shows the command first), then calls make. Where everything is installed
# `make demo` and `make check` do the same without it.
set -eu
cd "$(dirname "$0")"

target=${1:-}
case $target in
demo | check) ;;
*)
    echo "usage: sh bootstrap.sh demo|check" >&2
    exit 2
    ;;
esac

# What the build needs, and what the tests need besides.
packages="gcc libc6-dev make pkg-config libevent-dev libpcre2-dev libutf8proc-dev libcurl4-openssl-dev libcurl4"
[ "$target" = check ] && packages="$packages libcmocka-dev python3 python3-numpy python3-venv curl"

installed() {
    dpkg-query -W -f '${Status}\n' "$1" 2>/dev/null | grep -q '^install ok installed$'
}

missing=
for package in $packages; do
    # Ubuntu 24.04 renamed libcurl4 to libcurl4t64, which provides the old name.
    installed "$package" || installed "${package}t64" || missing="$missing $package"
done

if [ -n "$missing" ]; then
    command -v apt-get >/dev/null || {
        echo "bootstrap: this system has no apt-get; install the equivalents of:$missing" >&2
        exit 1
    }
    if [ "$(id -u)" = 0 ]; then
        as_root=
    elif command -v sudo >/dev/null && sudo -v; then
        as_root=sudo
    else
        echo "bootstrap: not root and no sudo; run this as root, then again:" >&2
        echo "  apt-get update && apt-get install -y --no-install-recommends$missing" >&2
        exit 1
    fi
    echo "+ $as_root apt-get update && $as_root apt-get install -y --no-install-recommends$missing"
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q
    # shellcheck disable=SC2086 # a list of package names
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
fi

jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
echo "+ make -j$jobs $target"
exec make -j"$jobs" "$target"
