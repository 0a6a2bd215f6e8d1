#!/bin/bash
# MPICH's own test suite under the MPICH of this machine, with the profiler and without: the same tests must pass.
#
#     [BUILD=folder] tests/suites/mpich.sh [--only REGEX]
#
# BUILD is the build under test (build). The suite is that of Debian's source package; this script fetches and configures it once
# in SUITES (build/suites). The system's package lists stay as they are: apt-get gets a folder of its own.
set -euo pipefail
cd "$(dirname "$0")/../.."

SUITES=$(realpath --canonicalize-missing "${SUITES:-build/suites}")
export SUITES BUILD=${BUILD:-build}
python=${PYTHON:-/usr/bin/python3}
home=$SUITES/mpich

copy_source_lists() { # the system's sources of Debian and Ubuntu packages, as sources of source packages
    local list
    mkdir -p "$home"/apt/{parts,lists/partial,cache/archives/partial}
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
        if [ -s "$list" ] && grep --quiet --extended-regexp '/(debian|ubuntu)' "$list"; then
            sed 's/^Types:.*/Types: deb-src/; s/^deb /deb-src /' "$list" >"$home/apt/parts/$(basename "$list")"
        fi
    done
}

apt_get() {
    (cd "$home" && apt-get --quiet -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$home/apt/parts" \
        -o "Dir::State::lists=$home/apt/lists" -o "Dir::Cache=$home/apt/cache" -o APT::Sandbox::User=root "$@")
}

fetch() {
    copy_source_lists
    apt_get update
    apt_get source --download-only mpich
    tar --extract --directory "$home" --file "$home"/mpich_*.orig.tar.xz
    mv "$home"/mpich-*/test/mpi "$home/tests"
}

configure() {
    cd "$home/tests"
    ./configure --with-mpi=/usr MPIEXEC=mpiexec.mpich MPICC=mpicc.mpich MPICXX=mpicxx.mpich MPIF77=mpif77.mpich MPIFC=mpif90.mpich \
        --enable-threads=multiple CC=mpicc.mpich CXX=mpicxx.mpich F77=mpif77.mpich FC=mpif90.mpich
    # It leaves out mpi_f08 unless MPICH's own configure has started it, though it finds that mpi_f08 works.
    sed -i 's/^S\["HAS_F08_TRUE"\]=.*/S["HAS_F08_TRUE"]=""/; s/^S\["HAS_F08_FALSE"\]=.*/S["HAS_F08_FALSE"]="#"/' config.status
    ./config.status util/Makefile depfiles
    for folder in util dtpools; do
        make --silent --directory "$folder"
    done
}

prepare() {
    mkdir -p "$home"
    fetch
    (configure)
    touch "$home/ready"
}

if [ ! -e "$home/ready" ]; then
    rm -rf "$home"
    if ! command -v mpicc.mpich >/dev/null || ! command -v apt-get >/dev/null; then
        echo "SKIPPED: MPICH's test suite: no mpicc.mpich or no apt-get here"
        exit 0
    fi
    mkdir -p "$SUITES"
    # set -e does not hold inside a condition
    functions=$(declare -f copy_source_lists apt_get fetch configure prepare)
    bash -c "set -euo pipefail; home=$home; $functions; prepare" >"$SUITES/mpich.log" 2>&1 || {
        echo "SKIPPED: MPICH's test suite: it could not be set up here ($SUITES/mpich.log)"
        exit 0
    }
fi
exec "$python" tests/suites/mpich_suite.py "$@"
