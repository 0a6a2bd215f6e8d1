#!/bin/bash
# Records schema-<version>.tar.xz, by which tests/report/test_released_versions.py checks that databases of this version stay readable, and
# schema-<version>.json, what they hold. Once, when a version is released: tests/report/recordings/record.sh VERSION
# As root, after `make check` has built the doubles. Two jobs of two ranks: one with steps, regions and most kinds of MPI calls, and a training
# with NCCL on GPUs that do not exist (tests/doubles). Only the tables sample_start and nccl_algorithm stay empty.
set -euo pipefail
cd "$(dirname "$0")/../../.."
version=${1:?usage: record.sh VERSION}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/train.py" <<'END'
import sys, numpy
from mpi4py import MPI
import commprof_marks as marks

world, buffers = MPI.COMM_WORLD, [numpy.zeros(1 << bits) for bits in (4, 12)]
half = world.Split(world.rank % 2, world.rank)
ring = {"dest": 1 - world.rank, "source": 1 - world.rank}
halo = [world.Send_init(buffers[0], 1 - world.rank), world.Recv_init(numpy.zeros(16), 1 - world.rank)]
for step in range(40):
    marks.step()
    with marks.region("halo"):
        MPI.Prequest.Startall(halo)
        MPI.Request.Waitall(halo)
        world.Sendrecv(buffers[1], recvbuf=numpy.zeros(1 << 12), **ring)
    requests = [world.Irecv(numpy.zeros(16), 1 - world.rank), world.Isend(buffers[0], 1 - world.rank)]
    with marks.region("gradients"):
        for buffer in buffers:
            world.Allreduce(MPI.IN_PLACE, buffer)
    MPI.Request.Waitall(requests)
    half.Bcast(buffers[0])
END
cp examples/steps_and_regions/commprof_marks.py "$folder"

job() { # job NAME COMMAND...: profiled on a host without a name of its own, from the folder
    local name=$1
    shift
    (cd "$folder" && unshare --uts sh -c 'hostname node01; exec "$@"' sh mpirun.openmpi --allow-run-as-root --oversubscribe -n 2 \
        "$OLDPWD/build/bin/commprof-run" --output "$name" "$@")
}
export COMMPROF_FACTS="settings.*,time_namespace,cpu_model"
job mpi /usr/bin/python3 train.py
cp -r build/tests/openmpi/training build/doubles "$folder"
export LD_LIBRARY_PATH=$folder/doubles COMMPROF_GPU=on COMMPROF_GPU_EVERY_S=0 COMMPROF_GPU_COLLECT_MS=20
job gpu ./training 6 >/dev/null
unset LD_LIBRARY_PATH "${!COMMPROF_@}"
for command in "calls mpi" "sizes mpi" "peers mpi" "regions mpi" "calls gpu" "gpu gpu --by kernel"; do
    # shellcheck disable=SC2086 # a command with its arguments
    (cd "$folder" && "$OLDPWD/build/bin/hvprof-report" $command --json | jq --compact-output "{\"$command\": .}")
done | jq --slurp --compact-output add >"tests/report/recordings/schema-$version.json"
tar --create --sort=name --owner=0 --group=0 --mtime=@0 --directory="$folder" mpi gpu | xz -9e >"tests/report/recordings/schema-$version.tar.xz"
