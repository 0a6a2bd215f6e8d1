#!/bin/bash
# LAMMPS and GROMACS of Debian on two small inputs: `steps` finds as many steps as the program says that it made.
#
#     [BUILD=folder] tests/suites/applications.sh
#
# They are installed where that is possible, and else skipped, with why. An unclear answer has to show the nest of loops.
set -euo pipefail
cd "$(dirname "$0")/../.."

build=$(realpath "${BUILD:-build}")
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMP_NUM_THREADS=1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

is_here() { # is_here NAME PROGRAM
    if command -v "$2" >/dev/null || { setup/packages.sh check-applications && command -v "$2"; } >"$folder/log" 2>&1; then
        return
    fi
    echo "SKIPPED: $1: $(tail -n 1 "$folder/log")"
    return 1
}

profiled() { # profiled RUN COMMAND...: with 4 ranks, in the folder of the inputs
    (cd "$folder" && mpirun.openmpi -n 4 env COMMPROF_OUTPUT="$1" "$build/bin/commprof-run" "${@:2}" >"$1.out" 2>&1)
}

check() { # check NAME RUN STEPS: within 5 % of the program's own count, or "unclear" with the nest of loops
    local found certainty loops
    IFS=, read -r found certainty loops < <("$build/bin/hvprof-report" steps --json "$folder/$2" |
        python3 -c 'import json, sys
row, = json.load(sys.stdin)
print(row["total_steps"] or row["steps"], row["certainty"], row["loops"], sep=",")')
    if ((found * 20 >= $3 * 19 && found * 20 <= $3 * 21)); then
        echo "$1: $found steps ($certainty), by its own count $3: $loops"
    elif [ "$certainty" = none ] && [ -n "$loops" ]; then
        echo "$1: unclear, by its own count $3 steps: $loops"
    else
        echo "FAILED: $1: $found steps ($certainty), by its own count $3: $loops"
        failed=1
    fi
}

if is_here LAMMPS lmp; then
    profiled lammps lmp -log none -var cells 12 -var steps 200 -in "$PWD/tests/suites/melt.in"
    check LAMMPS lammps "$(sed -n 's/^Loop time .* for \([0-9]*\) steps .*/\1/p' "$folder/lammps.out")"
fi

if is_here GROMACS gmx_mpi; then
    (cd "$folder" && {
        printf '#include "oplsaa.ff/forcefield.itp"\n#include "oplsaa.ff/spc.itp"\n[ system ]\nwater\n[ molecules ]\n' >water.top
        printf 'integrator = md\nnsteps = 200\ndt = 0.001\nrcoulomb = 0.9\nrvdw = 0.9\ncoulombtype = PME\n' >water.mdp
        gmx_mpi solvate -cs spc216.gro -box 3 3 3 -p water.top -o water.gro
        gmx_mpi grompp -f water.mdp -c water.gro -p water.top -o water.tpr -maxwarn 5
    }) >"$folder/log" 2>&1 || tail -n 20 "$folder/log"
    profiled gromacs gmx_mpi mdrun -s water.tpr -ntomp 1 -npme 0 -nb cpu -notunepme
    # nsteps 200 are the steps 0 to 200
    check GROMACS gromacs 201
fi
exit $failed
