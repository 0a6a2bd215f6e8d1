#!/bin/bash
# Compares Debian's Open MPI and MPICH on a job without the job, as docs/KITS.md does: k-means on two ranks runs under Open MPI, its calls
# become a kit, and both libraries replay it in turns. Before that, replays in turns with the job show for which share of it they stand.
#
#     examples/replay-libraries.sh [FOLDER [BLOCKS [POINTS]]]      build/replay-libraries, 6 blocks, 100,000 points; a minute on two idle cores
#
# The folder must be new.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(realpath -m "${1:-build/replay-libraries}") blocks=${2:-6} points=${3:-100000}
mkdir -p "$folder"
export PATH=$PWD/build/bin:$PATH OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

mpicc.openmpi -std=c11 -O2 -o "$folder/kmeans" examples/kmeans/kmeans.c -lm
cd "$folder"
openmpi='mpirun.openmpi --bind-to core --mca btl self,vader -n 2' mpich='mpirun.mpich -bind-to core -n 2'

$openmpi commprof-run --output job ./kmeans "$points"
hvprof-report replay kit job -o job.kit

commprof-experiment run own --kit job.kit --blocks "$blocks" --arm "job: $openmpi {} ./kmeans $points" --arm "replay: $openmpi {}"
hvprof-report replay check own -o job.kit.check

commprof-experiment run libraries --kit job.kit --blocks "$blocks" --arm "openmpi: $openmpi {}" --arm "mpich: $mpich {}"
hvprof-report compare libraries
