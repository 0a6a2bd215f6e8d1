#!/bin/bash
# Runs the tests, after the build:
#
#     tests/run-all.sh [first|rest|all|nightly]
#
# `first` is `make check`: all but what is marked slow (pytest.mark.slow, SLOW in C, the sanitizers). `rest` is
# what `first` leaves, `all` is both; none of them judges by the clock. `nightly` is the rest: what needs a quiet
# machine (pytest.mark.nightly, the plants of tests/truth, TIMES times each, and bench/run.py), with its figures in
# build/nightly.md. The last line is `N passed, N failed, N skipped`, over all sections, and above it are the names
# of those that failed. A section that fails does not keep the others from running.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

python=${PYTHON:-/usr/bin/python3}
output=$(mktemp)
trap 'rm -f "$output"' EXIT
passed=0 failed=0 skipped=0
names=()
layer=${1:-all}
case $layer in
    first) unit=(first) chosen=(-m 'not slow and not nightly') ;;
    rest) unit=(rest) chosen=(-m 'slow and not nightly') ;;
    all) unit=() chosen=(-m 'not nightly') ;;
    nightly) chosen=(-m nightly -rA) ;;
    *)
        echo "usage: tests/run-all.sh [first|rest|all|nightly]" >&2
        exit 2
        ;;
esac

count_of() { # count_of WORD...: the numbers before these words in the section's last line, added up
    local word sum=0
    for word; do
        [[ $(tail -n 1 "$output") =~ ([0-9]+)\ $word ]] && ((sum += BASH_REMATCH[1]))
    done
    echo "$sum"
}

# A section's last line counts its tests: the unit tests' own, or pytest's. A section that ended badly without a failed test has
# failed all the same.
section() { # section TITLE COMMAND...
    local title=$1 status here
    shift
    printf '\n== %s\n' "$title"
    "$@" 2>&1 | tee "$output"
    status=${PIPESTATUS[0]}
    here=$(count_of failed error)
    if [ "$status" -ne 0 ] && [ "$here" -eq 0 ]; then
        echo "$title: ended with status $status"
        here=1
    fi
    mapfile -t -O ${#names[@]} names < <(grep --only-matching --extended-regexp '^(test_[a-z_]+: )?(FAILED|ERROR) .*' "$output" | cut --characters=-300)
    ((passed += $(count_of passed), failed += here, skipped += $(count_of skipped)))
}

pytest() { # pytest FOLDER [OPTION...]; a folder without a slow test is no failure
    "$python" -m pytest -q "${chosen[@]}" "$@"
    local status=$?
    return $((status == 5 && ${#chosen[@]} > 0 ? 0 : status))
}

# On all cores, where pytest-xdist is there. A job of several ranks fills cores for a part of its time alone: three jobs at a time keep
# two cores busy. Tests of one file share their jobs, and what they read.
on_all_cores=() by_file=() several_jobs=()
if "$python" -c 'import xdist' 2>/dev/null; then
    on_all_cores=(-n "$(nproc)")
    by_file=(--dist loadfile)
    several_jobs=(-n "$(($(nproc) > 6 ? $(nproc) / 2 : 3))")
fi

# mandoc's complaints that mean something; a page of ours that another one names is there, though not installed.
check_manual_pages() {
    local page said total=0 wrong=0
    for page in build/man/*.[1-8]; do
        said=$(mandoc -T lint -W warning "$page" | grep -v 'referenced manual not found')
        ((total += 1))
        if [ -n "$said" ]; then
            echo "$said"
            ((wrong += 1))
        fi
    done
    echo "$((total - wrong)) passed, $wrong failed, 0 skipped"
    [ "$wrong" -eq 0 ]
}

in_tests() { # in_tests MODULE [OPTION...]
    (cd tests && "$python" -B -m "$@")
}

# One job after the other.
nightly() {
    local figures=$PWD/build/nightly.md
    section "planted faults and their twins" in_tests truth --times "${TIMES:-2}" --markdown "$figures"
    section "real jobs against their own clocks" pytest tests/mpi
    grep -E '^(PASSED|FAILED|ERROR|SKIPPED) ' "$output" | sed '1s/^/\n/; s/^/- /' >>"$figures"
    section "costs" "$python" bench/run.py
    printf '\n```\n%s\n```\n' "$(<"$output")" >>"$figures"
    echo "The figures are in $figures."
}

every_machine() {
    section "unit tests" tests/unit/run.sh "${unit[@]}"
    section "layers of the source" pytest tests/layers
    section "prototypes, exports and constants" pytest tests/abi "${on_all_cores[@]}"
    section "reports" pytest tests/report "${on_all_cores[@]}" "${by_file[@]}"
    section "instructions of a call" pytest tests/cost
    section "real ranks" pytest tests/mpi "${several_jobs[@]}" "${by_file[@]}"
    if [ "$layer" = rest ]; then
        : # the pages have been checked
    elif command -v mandoc >/dev/null; then
        section "manual pages" check_manual_pages
    else
        printf '\n== manual pages\nSKIPPED: no mandoc here\n'
        ((skipped += 1))
    fi
}

case $layer in nightly) nightly ;; *) every_machine ;; esac

if [ ${#names[@]} -gt 0 ]; then
    printf '\n== failed\n'
    printf '%s\n' "${names[@]}"
fi
printf '\n%d passed, %d failed, %d skipped\n' $passed $failed $skipped
[ $failed -eq 0 ] && [ $passed -gt 0 ]
