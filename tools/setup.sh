#!/bin/sh
# Set-up: installs what is missing and nothing else.
#
#   tools/setup.sh build    compiler, cmake, ninja and the libraries: enough for `make` and `make demo`;
#                           MuJoCo (library, headers) and OGBench's description files, in deps/
#   tools/setup.sh test     that, the checking tools, and the Python oracles of tools/requirements.txt in .venv
#
# Everything is looked for first, so a second run touches neither the network nor the disk. Packages come
# from the system's own apt sources, as root or through sudo. Without either, what `build` needs beside a compiler is
# unpacked into .packages/, which `make` then uses (docs/install.md). On systems without apt the script says what is missing.
set -eu
cd "$(dirname "$0")/.."

mode=${1:-test}
case $mode in
build | test) ;;
*) echo "usage: tools/setup.sh build|test" >&2 && exit 2 ;;
esac

build_packages="gcc libc6-dev make cmake ninja-build libdeflate-dev libhdf5-dev zlib1g-dev python3 python3-venv"
test_packages="git g++ pkgconf clang libclang-rt-dev llvm clang-format clang-tidy libcmocka-dev libosmesa6"

# What a test does without, by skipping: nobody is kept from testing who may not install it.
wanted_packages="openmpi-bin"

packages=$build_packages
[ "$mode" = test ] && packages="$packages $test_packages"

say() { echo "setup: $*" >&2; }

# One dpkg-query for all names; a name that is not fully installed comes out.
missing_packages() {
    installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $packages 2>/dev/null |
        sed -n 's/^installed //p' || true)
    for package in $packages; do
        echo "$installed" | grep -qx "$package" || printf ' %s' "$package"
    done
}

# Into .packages/, with what they depend on, for a user who may not install. Programs there find their libraries by
# LD_LIBRARY_PATH, and what is built with them by DT_RPATH, which unlike DT_RUNPATH also counts for libraries' libraries.
unpack_packages() { # PACKAGE...
    if [ "$mode" = test ] || ! command -v cc >/dev/null 2>&1 || ! echo '#include <stdio.h>' | cc -E - >/dev/null 2>&1; then
        say "these packages are missing and need root: $*"
        say "run as root: apt-get install $*"
        exit 1
    fi
    [ "$(cat .packages/stamp 2>/dev/null)" != "$*" ] || return 0
    say "no root: unpacking into .packages/ what is missing: $*"
    rm -rf .packages
    mkdir .packages
    all=$(apt-get -s install --no-install-recommends "$@" | sed -n 's/^Inst \([^ ]*\).*/\1/p')
    # shellcheck disable=SC2086 # names are words
    (cd .packages && apt-get -qq download $all && for file in *.deb; do dpkg-deb -x "$file" . && rm "$file"; done) || {
        say "they cannot be fetched; as root: apt-get install $*"
        exit 1
    }
    lib=$PWD/.packages/usr/lib/$(cc -dumpmachine)
    cat >.packages/env <<EOF
libraries=$lib
export PATH="$PWD/.packages/usr/bin:\$PATH" CMAKE_PREFIX_PATH="$PWD/.packages/usr"
export LD_LIBRARY_PATH="\$libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}" LDFLAGS="-Wl,--disable-new-dtags,-rpath,\$libraries"
EOF
    echo "$*" >.packages/stamp
}

install_packages() {
    if [ "$(id -u)" = 0 ]; then
        root=""
    elif command -v sudo >/dev/null 2>&1; then
        root="sudo"
    else
        unpack_packages $1
        return
    fi
    say "installing$1"
    # The index may be absent (bare image) or stale: refresh it once, only when there is something to get.
    $root env DEBIAN_FRONTEND=noninteractive apt-get -qq update >/dev/null
    $root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends $1 >/dev/null
}

if command -v dpkg-query >/dev/null 2>&1 && command -v apt-get >/dev/null 2>&1; then
    missing=$(missing_packages)
    [ -z "$missing" ] || install_packages "$missing"
else
    for tool in cc make cmake ninja; do
        command -v $tool >/dev/null 2>&1 || { say "no apt here and '$tool' is missing"; absent=1; }
    done
    if [ -n "${absent:-}" ]; then
        say "install the equivalents of: $packages"
        exit 1
    fi
fi

# Open MPI, for the tests of several ranks alone.
if [ "$mode" = test ] && ! command -v mpirun >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        (install_packages " $wanted_packages") || true
    fi
    command -v mpirun >/dev/null 2>&1 || say "no mpirun ($wanted_packages): what several ranks do is not tested"
fi

python=/usr/bin/python3
[ -x $python ] || python=$(command -v python3)

# The simulator and the descriptions of the robots, out of the wheels that the tests' oracles come from: both sides
# run the same library on the same files. Only files are taken; no Python is needed afterwards.
pin() { sed -n "s/^\($1==[^ ]*\).*/\1/p" tools/requirements.txt; }

unpack() { # WHEELS INTO
    "$python" - "$1" "$2" <<'EOF'
import pathlib, re, sys, zipfile

# Where files of the wheels go: what is not matched stays out.
RULES = [
    (r"mujoco/(libmujoco\.so\.[0-9.]+)", r"mujoco/lib/\1"),
    (r"mujoco/(include/mujoco/[a-z]\w+\.h)", r"mujoco/\1"),
    (r"ogbench/((?:locomaze/assets|manipspace/descriptions)/.*[^/])", r"ogbench/\1"),
    (r"(mujoco|ogbench)-[^/]+\.dist-info/(?:licenses/)?(.*LICENSE[^/]*)", r"\1/\2"),
]
for wheel in pathlib.Path(sys.argv[1]).glob("*.whl"):
    archive = zipfile.ZipFile(wheel)
    for name in archive.namelist():
        for pattern, place in RULES:
            if match := re.fullmatch(pattern, name):
                target = pathlib.Path(sys.argv[2], match.expand(place))
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(name))
EOF
}

want="$(pin mujoco) $(pin ogbench) 1"
if [ "$(cat deps/stamp 2>/dev/null)" != "$want" ]; then
    say "fetching MuJoCo and OGBench's descriptions into deps/"
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    pip="$python -m pip"
    for wheel in .packages/usr/share/python-wheels/pip-*.whl; do
        [ ! -f "$wheel" ] || $pip --version >/dev/null 2>&1 || pip="$python $wheel/pip"
    done
    $pip --version >/dev/null 2>&1 || { "$python" -m venv "$work/venv" && pip="$work/venv/bin/python -m pip"; }
    if $pip download -q --disable-pip-version-check --only-binary :all: --no-deps --python-version 3.11 \
        -d "$work" "$(pin mujoco)" "$(pin ogbench)" >&2; then
        rm -rf deps
        unpack "$work" deps
        echo "$want" >deps/stamp
    else
        say "no wheels could be fetched: the build goes on without simulation"
    fi
fi

[ "$mode" = test ] || exit 0

# The oracles. The stamp holds what the environment was made from: the pins and the interpreter.
stamp=.venv/stamp
want=$({ cat tools/requirements.txt; readlink -f "$python"; } | cksum)
if [ "$(cat $stamp 2>/dev/null)" != "$want" ]; then
    say "making .venv with the Python oracles (numpy, safetensors, jax, mujoco, ogbench)"
    rm -rf .venv
    "$python" -m venv .venv
    # Wheels only: nothing is compiled and nothing of theirs runs while installing.
    .venv/bin/python -m pip install -q --disable-pip-version-check --only-binary :all: --no-deps -r tools/requirements.txt >&2
    .venv/bin/python -c 'import jax, numpy, safetensors, scipy, ogbench' || { say "the Python oracles do not load"; exit 1; }
    echo "$want" >$stamp
fi
