#!/bin/sh
# Makes .venv and the system parts that a target needs. Usage: tools/setup.sh base|dev
# base: what `make demo` needs. dev: base, test tools, and the system parts of `make test`.
# Stops with the exact install line when a part can not be had.
set -eu
cd "$(dirname "$0")/.."
mode="${1:-base}"
python="${PYTHON:-python3}"

say() { printf '%s\n' "$*" >&2; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then sudo -n "$@"; else return 1; fi
}

apt_refreshed=no
need() { # need <what it is for> <package>...: install, or stop with the line to run
    what="$1"; shift
    say "setup: installing $* ($what)"
    if command -v apt-get >/dev/null 2>&1; then
        if [ "$apt_refreshed" = no ]; then as_root apt-get update -qq >/dev/null 2>&1 || true; apt_refreshed=yes; fi
        if as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null; then return 0; fi
    fi
    say "setup: $what is missing and could not be installed here. Run this, then try again:"
    say "    sudo apt-get update && sudo apt-get install -y --no-install-recommends $*"
    exit 1
}

if ! command -v "$python" >/dev/null 2>&1; then need "Python 3.11 or newer" python3 python3-venv; fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    say "setup: expected Python 3.11 or newer, found $("$python" --version 2>&1); set PYTHON=/path/to/python3.11 or run:"
    say "    sudo apt-get update && sudo apt-get install -y python3 python3-venv"
    exit 1
fi
if ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
    need "the venv module of Python" "python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
fi

[ -x .venv/bin/python ] || "$python" -m venv .venv

install() { # install <lock name> [extra]: hashes are checked; the project itself goes in editable
    stamp=".venv/.installed-$1"
    if [ -f "$stamp" ] && ! [ "requirements/$1.lock" -nt "$stamp" ] && ! [ pyproject.toml -nt "$stamp" ]; then return 0; fi
    say "setup: installing the locked packages of requirements/$1.lock into .venv"
    if ! .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r "requirements/$1.lock" 2>.venv/pip.log; then
        cat .venv/pip.log >&2
        say "setup: the Python packages could not be installed. With a package registry in reach, run:"
        say "    .venv/bin/python -m pip install --require-hashes -r requirements/$1.lock"
        exit 1
    fi
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . 2>.venv/pip.log || { cat .venv/pip.log >&2; exit 1; }
    touch "$stamp"
}

case "$mode" in
base)
    [ -f .venv/.installed-dev ] && install dev || install base
    ;;
dev)
    install dev
    command -v docker-registry >/dev/null 2>&1 || need "a real OCI registry" docker-registry
    ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || need "PostgreSQL server binaries" postgresql
    [ -x /usr/bin/chromium ] || command -v chromium-browser >/dev/null 2>&1 || need "a browser" chromium
    ;;
*)
    say "usage: tools/setup.sh base|dev"; exit 2
    ;;
esac
