#!/bin/bash
# Compares MPI libraries on two examples, k-means in C and the training run of `make demo`, as docs/COMPARING.md advises: two ranks, bound to a
# core each, Debian's Open MPI and MPICH and Intel MPI in turns, and the first of them once more. On two cores that nothing else uses:
#
#     examples/compare-libraries.sh [FOLDER [BLOCKS]]      build/compare-libraries, 10 blocks; about 7 minutes, at most 6 for each example
#
# A library that is not there is left out. After an interruption the same command goes on.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(realpath -m "${1:-build/compare-libraries}") blocks=${2:-10}
mkdir -p "$folder"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1
export COMMPROF_QUIET=on

make -s
setup/mpis.sh impi-2021.19.0 || true
intel=$PWD/build/mpis/impi-2021.19.0
installed=$(echo build/mpis/venvs/impi-devel-2021.19.0/lib/python3*/site-packages/mpi4py)

kmeans=() demo=()
bind=
add() { # add NAME MPICC LIBRARY MPIRUN...: an arm of each experiment; LIBRARY for mpi4py. $bind: what binds a rank, if the launcher does not
    local name=$1 mpicc=$2 library=$3
    shift 3
    command -v "$mpicc" "$1" >/dev/null || return 0
    "$mpicc" -std=c11 -O2 -o "$folder/kmeans.$name" examples/kmeans/kmeans.c -lm
    kmeans+=(--arm "$name: $* -n 2 {} $bind $folder/kmeans.$name 800000")
    # One mpi4py for all libraries: that of the wheels, which opens the library that it is given.
    [ -e "$installed" ] || return 0
    mkdir -p "$folder/python" "$folder/lib.$name"
    ln -sfn "$(realpath "$installed")" "$folder/python/mpi4py"
    [[ $library == */libmpich* ]] && ln -sfn "$library" "$folder/lib.$name/libmpi.so.12" # the name that mpi4py needs
    local python="env PYTHONPATH=$folder/python LD_LIBRARY_PATH=$folder/lib.$name MPI4PY_LIBMPI=$library /usr/bin/python3"
    demo+=(--arm "$name: $* -n 2 {} $bind $python examples/data_parallel/train.py --pictures 384")
}
system=/usr/lib/$(uname -m)-linux-gnu
add openmpi mpicc.openmpi "$system/libmpi.so.40" mpirun.openmpi --bind-to core --mca btl self,vader
add mpich mpicc.mpich "$system/libmpich.so.12" mpirun.mpich -bind-to core
# Intel MPI does not bind in every virtual machine, whatever I_MPI_PIN_DOMAIN says.
bind="sh -c 'exec taskset -c \$MPI_LOCALRANKID \"\$0\" \"\$@\"'"
add intel "$intel/mpicc" "$PWD/build/mpis/venvs/impi-devel-2021.19.0/lib/libmpi.so.12" "$intel/mpirun"

compare() { # compare NAME ARM...
    local experiment=$folder/$1
    shift
    if [ -e "$experiment/experiment.json" ]; then
        build/bin/commprof-experiment resume "$experiment" --limit 6m
    else
        build/bin/commprof-experiment run "$experiment" --blocks "$blocks" --aa --limit 6m "$@"
    fi
    build/bin/hvprof-report compare "$experiment" | tee "$experiment.txt"
    build/bin/hvprof-report html "$experiment" --output "$experiment.html"
}
compare kmeans "${kmeans[@]}"
[ ${#demo[@]} -eq 0 ] || compare demo "${demo[@]}"
