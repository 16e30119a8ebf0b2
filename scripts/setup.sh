#!/bin/sh
# Brings everything Trendlake needs, once: Python packages (.venv), the linter of contracts, Java, Delta's jars, an
# archive of Java's classes (.trendlake). With --docs: what builds the docs' site; with --browser: Chromium.
# What is there already is left alone: a second run needs no network, says nothing and takes a moment.
set -eu

cd "$(dirname "$0")/.."
STATE=${TRENDLAKE_STATE:-.trendlake}
STAMP=.venv/.trendlake-setup
export PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf '%s\n' "$*"; }
stop() { printf 'set-up: %s\n' "$*" >&2; exit 1; }
may_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }
apt_install() {
    say "set-up: installing $* with apt"
    if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"; } >"$STATE/apt.log" 2>&1; then
        tail -n 5 "$STATE/apt.log" >&2
        return 1
    fi
}

# --- Python: 3.11 or 3.12 --------------------------------------------------------------------------------------
right_python() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null; }

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        right_python "$PYTHON" || stop "PYTHON=$PYTHON is not a Python 3.11 or 3.12."
        say "$PYTHON"
        return
    fi
    for name in python3.12 python3.11 python3 python; do
        if right_python "$name"; then say "$name"; return; fi
    done
    stop "no Python 3.11 or 3.12 on PATH: install one, or name it with PYTHON=/path/to/python3.12 make ..."
}

# --- uv: the one on PATH, else a pinned one of our own ---------------------------------------------------------
find_uv() {
    if uv --version >/dev/null 2>&1; then say uv; return; fi
    own="$STATE/tools/uv"
    if ! "$own/bin/uv" --version >/dev/null 2>&1; then
        mkdir -p "$own"
        if "$1" -m pip --version >/dev/null 2>&1; then
            "$1" -m pip install --quiet --require-hashes --upgrade --target "$own" -r locks/uv.lock >&2
        else
            if ! "$1" -c 'import ensurepip' 2>/dev/null; then
                may_apt || stop "$1 has neither pip nor ensurepip: install one of them (Debian: apt install python3-venv), or uv."
                apt_install python3-venv >&2
            fi
            "$1" -m venv "$own" >&2
            "$own/bin/python" -m pip install --quiet --require-hashes -r locks/uv.lock >&2
        fi
    fi
    say "$own/bin/uv"
}

setup_python() {
    want=$(cat locks/dev.lock pyproject.toml scripts/setup.sh | cksum)
    if [ -f "$STAMP" ] && [ "$(cat "$STAMP")" = "$want" ] && right_python .venv/bin/python; then return; fi
    python=$(find_python)
    uv=$(find_uv "$python")
    if ! right_python .venv/bin/python; then
        "$uv" venv --quiet --clear --no-project --python "$("$python" -c 'import sys; print(sys.executable)')" .venv
    fi
    say "set-up: Python packages from locks/dev.lock into .venv ($(.venv/bin/python -V))"
    "$uv" pip sync --python .venv/bin/python --require-hashes --compile-bytecode --quiet locks/dev.lock
    "$uv" pip install --python .venv/bin/python --quiet --offline --no-deps --no-build-isolation -e .
    say "$want" >"$STAMP"
}

# --- tools in environments of their own: the linter of contracts, and the builder of the docs' site -------------
setup_tool() {    # the packages of locks/NAME.lock in the state folder's tools/NAME
    own="$STATE/tools/$1"
    want=$(cksum <"locks/$1.lock")
    if [ -f "$own/.lock" ] && [ "$(cat "$own/.lock")" = "$want" ] && "$own/bin/python" -c '' 2>/dev/null; then return; fi
    python=.venv/bin/python
    right_python "$python" || python=$(find_python)
    uv=$(find_uv "$python")
    "$uv" venv --quiet --clear --no-project --python "$("$python" -c 'import sys; print(sys.executable)')" "$own"
    "$uv" pip sync --python "$own/bin/python" --require-hashes --quiet "locks/$1.lock"
    say "$want" >"$own/.lock"
}

# --- Java: 17 or newer -----------------------------------------------------------------------------------------
java_home_of() {    # prints the home of a java binary of version 17 or newer
    properties=$("$1" -XshowSettings:properties -version 2>&1) || return 1
    version=$(say "$properties" | sed -n 's/^ *java\.specification\.version = \([0-9]*\).*/\1/p')
    [ "${version:-0}" -ge 17 ] || return 1
    say "$properties" | sed -n 's/^ *java\.home = //p'
}

find_java() {
    for java in ${JAVA_HOME:+"$JAVA_HOME/bin/java"} java /usr/lib/jvm/*/bin/java; do
        if java_home_of "$java"; then return; fi
    done
    return 1
}

setup_java() {
    if [ -s "$STATE/java_home" ] && [ -x "$(cat "$STATE/java_home")/bin/java" ]; then return; fi
    if ! home=$(find_java); then
        may_apt || stop "no Java 17 or newer: install one (Debian: apt install openjdk-17-jre-headless) or set JAVA_HOME."
        apt_install openjdk-17-jre-headless || stop "apt could not install openjdk-17-jre-headless; set JAVA_HOME to a Java 17 or newer."
        home=$(find_java) || stop "apt's openjdk-17-jre-headless does not start."
    fi
    say "set-up: Java of $home"
    say "$home" >"$STATE/java_home"
}

# --- Delta's jars, and the classes for tables on a local disk, compiled ------------------------------------------
setup_spark() {
    JAVA_HOME=$(cat "$STATE/java_home") .venv/bin/python -m trendlake.jobs.main setup --to "$STATE" >/dev/null
}

# --- an archive of Java's classes: Spark starts in half the time -------------------------------------------------
setup_classes() {
    JAVA_HOME=$(cat "$STATE/java_home") .venv/bin/python scripts/class_archive.py --to "$STATE"
}

# --- Chromium: for the tests of pages only, which are skipped without it -----------------------------------------
setup_browser() {
    for name in chromium chromium-browser google-chrome; do
        if command -v "$name" >/dev/null 2>&1; then return; fi
    done
    if ! { may_apt && apt_install chromium; }; then
        say "set-up: no Chromium on PATH, and apt may not bring it: the tests that look at pages are skipped."
    fi
}

# Tables, logs and settings are for this user alone; who has opened an existing folder to others has decided so.
[ -d "$STATE" ] || { mkdir -p "$(dirname "$STATE")"; mkdir -m 700 "$STATE"; }
# uv trusts the machine's own certificates and reads pip's index, as pip does.
export UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-1}" UV_NO_PROGRESS="${CI:+1}"
[ -n "$UV_NO_PROGRESS" ] || unset UV_NO_PROGRESS
[ -z "${PIP_INDEX_URL:-}" ] || export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$PIP_INDEX_URL}"
if [ "${1:-}" = --browser ]; then setup_browser; exit; fi
if [ "${1:-}" = --docs ]; then setup_tool docs; exit; fi
setup_python
setup_tool datacontract
setup_java
setup_spark
setup_classes
