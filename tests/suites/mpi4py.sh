#!/bin/bash
# The mpi4py test suite, with the profiler and without: the same tests must pass.
#
#     [BUILD=folder] tests/suites/mpi4py.sh [--mpi mpich] [--version 4.1.2] [--ranks 2] [--include REGEX]
#
# BUILD is the build under test (build). The suites stand in SUITES (build/suites), where this script sets up once what it
# needs: the suite's source, and mpi4py built for each MPI library that is installed.
set -euo pipefail
cd "$(dirname "$0")/../.."

SUITES=$(realpath --canonicalize-missing "${SUITES:-build/suites}")
export SUITES BUILD=${BUILD:-build}
python=${PYTHON:-/usr/bin/python3}

prepare() { # prepare MPI VERSION
    local mpi=$1 version=$2 home=$SUITES/mpi4py-$2-$1
    if [ -e "$home/ready" ]; then
        return
    fi
    if ! command -v "mpicc.$mpi" >/dev/null; then
        echo "SKIPPED: mpi4py $version under $mpi: no mpicc.$mpi here" >&2
        return
    fi
    mkdir -p "$SUITES"
    # mpi4py 3 does not build with the setuptools of today.
    echo 'setuptools<70' >"$SUITES/constraints.txt"
    export PIP_CONSTRAINT=$SUITES/constraints.txt
    if ! {
        [ -d "$SUITES/mpi4py-$version/test" ] || {
            "$python" -m pip download --quiet --no-deps --no-binary mpi4py --dest "$SUITES" "mpi4py==$version" &&
                tar --extract --gzip --directory "$SUITES" --file "$SUITES/mpi4py-$version.tar.gz"
        }
        "$python" -m venv --system-site-packages "$home" &&
            MPICC=mpicc.$mpi "$home/bin/pip" install --quiet --no-deps --no-cache-dir --ignore-installed --no-binary mpi4py \
                "mpi4py==$version"
    }; then
        echo "SKIPPED: mpi4py $version under $mpi: it could not be built here" >&2
        return
    fi
    touch "$home/ready"
}

for version in 3.1.6 4.1.2; do
    for mpi in openmpi mpich; do
        prepare "$mpi" "$version"
    done
done
exec "$python" tests/suites/mpi4py_suite.py "$@"
