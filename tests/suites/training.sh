#!/bin/bash
# Real training over MPI, with the profiler and without: the same parameters in the end, to the bit; and the profile says
# what ran. Then training with planted faults: the reports find all steps, name the slow rank, and nobody in a healthy run.
#
#     [BUILD=folder] [TRIXIE=folder] tests/suites/training.sh [--workload REGEX] [--times N]
#
# Horovod is built once for each MPI library that is installed, in SUITES (build/suites), against the distribution's PyTorch.
# DistributedDataParallel needs a PyTorch with the MPI backend, which Debian 13 has: TRIXIE is a folder with one, made by
# tests/suites/trixie.sh. What cannot be had is skipped, and said.
set -euo pipefail
cd "$(dirname "$0")/../.."

SUITES=$(realpath --canonicalize-missing "${SUITES:-build/suites}")
export SUITES BUILD=${BUILD:-build} TRIXIE=${TRIXIE:-/var/tmp/chroots/trixie}
python=${PYTHON:-/usr/bin/python3}
version=0.28.1

# CMake is told which MPI, by a program that Horovod takes for it.
write_cmake() { # write_cmake MPI FILE
    cat >"$2" <<END
#!/bin/sh
case \$1 in
    --version | --build) exec cmake "\$@" ;;
esac
exec cmake -DMPI_C_COMPILER=mpicc.$1 -DMPI_CXX_COMPILER=mpicxx.$1 "\$@"
END
    chmod +x "$2"
}

prepare_horovod() { # prepare_horovod MPI
    local mpi=$1 home=$SUITES/horovod-$1 need
    if [ -e "$home/ready" ]; then
        return
    fi
    for need in "mpicxx.$mpi" cmake g++; do
        if ! command -v "$need" >/dev/null; then
            echo "SKIPPED: Horovod under $mpi: no $need here" >&2
            return
        fi
    done
    if ! [ -e /usr/include/torch/extension.h ] || ! [ -e /usr/include/pybind11/pybind11.h ] ||
        ! "$python" -c 'import torch' 2>/dev/null; then
        echo "SKIPPED: Horovod under $mpi: Debian's python3-torch, libtorch-dev and pybind11-dev are needed" >&2
        return
    fi
    "$python" -m venv --system-site-packages "$home"
    write_cmake "$mpi" "$home/bin/cmake-for-mpi"
    if ! {
        "$home/bin/pip" install --quiet 'setuptools<70' packaging wheel cloudpickle psutil pyyaml &&
            env HOROVOD_CMAKE="$home/bin/cmake-for-mpi" HOROVOD_WITH_MPI=1 HOROVOD_WITHOUT_GLOO=1 HOROVOD_CPU_OPERATIONS=MPI \
                HOROVOD_WITH_PYTORCH=1 HOROVOD_WITHOUT_TENSORFLOW=1 HOROVOD_WITHOUT_MXNET=1 \
                CPLUS_INCLUDE_PATH=/usr/include/torch/csrc/api/include MAKEFLAGS="-j$(nproc)" \
                "$home/bin/pip" install --quiet --no-build-isolation --no-deps --no-cache-dir --no-binary horovod \
                "horovod==$version"
    } >"$home/log" 2>&1; then
        echo "SKIPPED: Horovod under $mpi: it could not be built here; $home/log says why" >&2
        return
    fi
    touch "$home/ready"
}

prepare_horovod openmpi
prepare_horovod mpich
if [ -e "$TRIXIE/ready" ]; then
    tests/suites/trixie.sh "$TRIXIE"
fi
exec "$python" tests/suites/training_suite.py "$@"
