#!/bin/bash
# The tests that need an MPI library, under each of many: tests/check-mpis.sh [NAME...], else the distribution's Open MPI and MPICH
# and all that setup/mpis.sh lists. A line a library as they end, then a table; logs are build/mpis/NAME.log. Fails if a test fails
# or a library that was named is not there.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

python=${PYTHON:-/usr/bin/python3}
mapfile -t names < <(printf '%s\n' openmpi mpich && setup/mpis.sh --list)
[ $# -eq 0 ] || names=("$@")
table=$(mktemp)
trap 'rm -f "$table"' EXIT
failed=0

command_of() { # command_of NAME TOOL
    case $1 in
        openmpi | mpich) echo "$2.$1" ;;
        *) echo "build/mpis/$1/$2" ;;
    esac
}

version_of() { # version_of NAME: what its library says of itself, shortened
    local program=build/mpis/version-$1
    "$(command_of "$1" mpicc)" tests/mpi_version.c -o "$program" &&
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$(command_of "$1" mpirun)" -n 1 "$program"
}

abi_of() {
    case $1 in
        *-abi) echo "standard" ;;
        openmpi*) echo "Open MPI" ;;
        *) echo "MPICH" ;;
    esac
}

count_of() { # count_of LOG WORD
    local count
    count=$(tail -n 1 "$1" | grep --only-matching "[0-9]* $2" | tail -n 1)
    echo "${count%% *}"
}

check_one() { # check_one NAME
    local name=$1 log=build/mpis/$1.log status
    if ! command -v "$(command_of "$name" mpicc)" >/dev/null; then
        echo "$name: NOT AVAILABLE, not tested"
        printf '%s|-|%s|-|-|-\n' "$name" "$(abi_of "$name")" >>"$table"
        [ "$asked" = all ] || failed=1
        return
    fi
    TEST_MPIS=$name "$python" -m pytest -q -rs -m "not nightly" tests/mpi tests/abi >"$log" 2>&1
    status=$?
    [ $status -eq 0 ] || failed=1
    echo "$name: $(tail -n 1 "$log")"
    [ $status -eq 0 ] || grep --extended-regexp '^(FAILED|ERROR)' "$log"
    printf '%s|%s|%s|%s|%s|%s\n' "$name" "$(version_of "$name" 2>/dev/null)" "$(abi_of "$name")" "$(count_of "$log" passed)" \
        "$(count_of "$log" failed)" "$(count_of "$log" skipped)" >>"$table"
}

asked=all
[ $# -eq 0 ] || asked=some
mkdir -p build/mpis
for name in "${names[@]}"; do
    check_one "$name"
done
printf '\n'
{
    echo 'library|says that it is|ABI|passed|failed|skipped'
    sed 's/||/|0|/g; s/|$/|0/' "$table"
} | column -t -s '|'
exit $failed
