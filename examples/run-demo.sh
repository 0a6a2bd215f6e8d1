#!/bin/bash
# Script of `make demo`, run from the root of the repository, once everything is built: a real
# training run on two ranks, one of which is late, under the profiler; on the terminal its summary,
# its steps and who is late, and a page with pictures beside its databases.
set -euo pipefail

cd "$(dirname "$0")/.."
run=build/demo/run
page=$run/report.html

fail() {
    echo "run-demo.sh: $1" >&2
    exit 1
}

# Debian's mpi4py and PyTorch are built for Open MPI, which need not be the MPI that plain mpirun belongs to.
mpirun=$(command -v mpirun.openmpi || command -v mpirun) || fail "there is no mpirun; setup/packages.sh demo"

mpirun_options=(-n 2)
# With pipefail, grep --quiet would end the writer early and so fail the pipe.
if "$mpirun" --version 2>&1 | grep 'Open MPI\|OpenRTE' >/dev/null; then
    # There may be one core; and both ranks are on this machine, where Open MPI would otherwise look for networks between
    # them, and complain in a container that has none.
    mpirun_options+=(--oversubscribe --mca mpi_yield_when_idle 1 --mca btl ^tcp)
    if [ "$(id -u)" -eq 0 ]; then
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    fi
fi

rm -rf "$run"
mkdir -p "$run"

echo "run-demo.sh: training on 2 ranks; rank 1 sleeps 20 ms before each step; half a minute on two cores"
COMMPROF_OUTPUT=$PWD/$run "$mpirun" "${mpirun_options[@]}" \
    build/bin/commprof-run /usr/bin/python3 examples/data_parallel/train.py --late-rank 1 ||
    fail "the training run failed"

for rank in 0 1; do
    [ -s "$run/rank-$rank.db" ] || fail "rank $rank has left no $run/rank-$rank.db"
done

echo
for command in summary steps late; do
    build/bin/hvprof-report "$command" "$run" || fail "hvprof-report $command failed"
    echo
done
build/bin/hvprof-report html "$run" --output "$page" || fail "hvprof-report html failed"
[ -s "$page" ] || fail "hvprof-report has written no $page"

echo "The page with pictures: $PWD/$page"
