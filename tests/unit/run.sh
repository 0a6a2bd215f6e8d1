#!/bin/bash
# Builds and runs the unit tests, from the top folder:
#
#     tests/unit/run.sh [first|rest] [NAME...]
#
# Plain, then with each sanitizer that this compiler has. `first` is the part of `make check`: plain, without
# the tests marked SLOW; `rest` is all that `first` leaves. With names (test_ledger) only these files.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

layer=all
case ${1-} in first | rest) layer=$1 && shift ;; esac
asked=("$@")
passed=0 failed=0 skipped=0

can_run_with() { # can_run_with FLAGS: whether a program built with these flags runs here
    local probe
    probe=$(mktemp)
    echo 'int main(void) { return 0; }' | "${CC:-cc}" -x c "$1" - -o "$probe" 2>/dev/null && "$probe"
    local can=$?
    rm -f "$probe"
    return $can
}

add_up() { # add_up NAME OUTPUT: prints it and adds the counts in its last line; silent if no test was chosen
    local line=${2##*$'\n'}
    if ! [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
        printf '%s: %s\nFAILED %s: ended before all of its tests had run\n' "$1" "$2" "$1"
        ((failed += 1))
    elif [ "$2" != "0 passed, 0 failed, 0 skipped" ]; then
        ((passed += BASH_REMATCH[1], failed += BASH_REMATCH[2], skipped += BASH_REMATCH[3]))
        printf '%s: %s\n' "$1" "$2"
    fi
}

is_asked() { # is_asked NAME
    [ ${#asked[@]} -eq 0 ] || [[ " ${asked[*]} " == *" $1 "* ]]
}

# shellcheck disable=SC2016 # the inner shell has names of its own
variant() { # variant NAME FLAGS [MAKE-VARIABLE...]
    local name=$1 flags=$2 program test
    local build=build/tests/unit/$name
    local logs=$build/logs
    shift 2
    if [ -n "$flags" ] && ! can_run_with "$flags"; then
        echo "SKIPPED variant $name: ${CC:-cc} $flags does not give a program that runs here"
        ((skipped += 1))
        return
    fi
    echo "unit tests, $name:"
    local -a make=(make --no-print-directory --silent --jobs="$(nproc)" --file=tests/unit/Makefile BUILD="$build" "$@")
    if ! "${make[@]}"; then
        echo "FAILED to build variant $name"
        ((failed += 1))
        return
    fi
    rm -rf "$logs"
    mkdir -p "$logs"
    "${make[@]}" names | while read -r program test; do
        is_asked "$test" && echo "$build/$program $test $logs"
    done | xargs --no-run-if-empty --max-procs="$(nproc)" --max-args=3 sh -c '"$0" "$1" >"$2/$1" 2>&1 || true'
    if [ "$UNIT_LAYER" != rest ] && is_asked test_commprof_run; then
        tests/unit/test_commprof_run.sh "$build/bin/commprof-run" build/lib/libcommprof.so >"$logs/test_commprof_run" 2>&1
    fi
    for test in "$logs"/*; do
        [ -e "$test" ] && add_up "$(basename "$test")" "$(<"$test")"
    done
}

# The tests must not depend on the user's settings.
unset "${!COMMPROF_@}"

# Leak detection is off: the library never frees what other threads may still read. Unbounded growth has its own tests. Frames stay on the
# stack (newer sanitizers move them): by their addresses the library tells calls inside calls.
export ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0:detect_stack_use_after_return=0
export TSAN_OPTIONS=halt_on_error=1:exitcode=66 UBSAN_OPTIONS=print_stacktrace=1

export UNIT_LAYER=$layer
variant plain ''
if [ "$layer" != first ]; then
    UNIT_LAYER=all
    variant address+undefined -fsanitize=address,undefined ASAN=1 UBSAN=1
    variant thread -fsanitize=thread TSAN=1
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
