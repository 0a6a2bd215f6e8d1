#!/bin/bash
# First steps of a user in clean Debians: builds a release's archive, profiles a job with it and
# reads it, from the build tree, from the wheel, and from what pip makes of the archive. Debian 11
# has Python 3.9, glibc 2.31 and Open MPI 4.1; 12 has 3.11, 2.36 and 4.1; 13 has 3.13, 2.41 and 5.0.
# As root, by debootstrap; the Debians stay in $BUILD/debians. pip gets its build backend out here.
# Run by `make check-debians`.
#
#     tests/check-debians.sh [SUITE...]
set -euo pipefail
cd "$(dirname "$0")/.."
debians=${BUILD:-build}/debians
[ $# -gt 0 ] || set -- bullseye bookworm trixie

inside() { # inside SUITE SCRIPT: in a mount namespace of its own, which ends with the script
    # shellcheck disable=SC2016 # $0 and $1 are the inner shell's
    unshare --mount --pid --fork sh -c '
        mount --rbind /dev "$0/dev" && mount --rbind /sys "$0/sys" && mount -t proc proc "$0/proc" &&
        exec env -i HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin \
            OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 chroot "$0" bash -euo pipefail -c "$1"' "$debians/$1" "$2"
}

packages='gcc libc6-dev make openmpi-bin python3-mpi4py python3-numpy python3-venv libsqlite3-0'
# shellcheck disable=SC2016 # $(...) and $way are the inner shell's
steps='
    cd /root/commprof-*[0-9]
    make >/dev/null
    python3 -m venv --system-site-packages /root/wheel
    /root/wheel/bin/pip install --quiet --no-index --no-deps /root/commprof-*.whl
    python3 -m venv --system-site-packages /root/sdist
    /root/sdist/bin/pip install --quiet --no-index --find-links /root/backend /root/commprof-*.tar.gz
    for programs in build/bin /root/wheel/bin /root/sdist/bin; do
        rm -rf run
        mpirun --oversubscribe --mca btl ^tcp -n 2 $programs/commprof-run --output run python3 examples/hybrid_parallel/train.py
        for command in summary steps late advise "html --output page.html"; do
            $programs/hvprof-report $command run >said
            test -s said
        done
        $programs/hvprof-report summary run
    done'

declare -A pythons=([bullseye]=3.9 [bookworm]=3.11 [trixie]=3.13)
mkdir -p "$debians"
make -s dist wheel AARCH64_CC=none
passed=0 failed=0
for suite; do
    [ -e "$debians/$suite/etc/debian_version" ] || debootstrap --variant=minbase "$suite" "$debians/$suite" ${MIRROR:+"$MIRROR"} >"$debians-$suite.log"
    cp /etc/resolv.conf "$debians/$suite/etc/"
    rm -rf "$debians/$suite"/root/*
    tar -xf "${BUILD:-build}"/dist/commprof-*.tar.gz -C "$debians/$suite/root"
    cp "${BUILD:-build}"/dist/commprof-*.tar.gz "${BUILD:-build}"/dist/*"$(uname -m)".whl "$debians/$suite/root"
    /usr/bin/python3 -m pip download --quiet --only-binary=:all: --python-version "${pythons[$suite]}" --dest "$debians/$suite/root/backend" \
        hatchling tomli # before 3.11 hatchling reads pyproject.toml by tomli
    if inside "$suite" "apt-get update -qq; apt-get install -qq --no-install-recommends $packages >/dev/null; $steps"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED in $suite"
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
