#!/bin/bash
# Builds and runs the unit tests: plain, then with each sanitizer that this compiler has. Run from the top folder.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

passed=0 failed=0 skipped=0

can_run_with() { # can_run_with FLAGS: whether a program built with these flags runs here
    local probe
    probe=$(mktemp)
    echo 'int main(void) { return 0; }' | "${CC:-cc}" -x c "$1" - -o "$probe" 2>/dev/null && "$probe"
    local can=$?
    rm -f "$probe"
    return $can
}

add_up() { # add_up OUTPUT STATUS: adds the counts in the last line
    local line
    line=$(tail -n 1 <<<"$1")
    if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
        ((passed += BASH_REMATCH[1], failed += BASH_REMATCH[2], skipped += BASH_REMATCH[3]))
    else
        echo "ended with status $2 before all of its tests had run"
        ((failed += 1))
    fi
}

run_one() { # run_one NAME COMMAND...
    local name=$1 output status
    shift
    output=$("$@" 2>&1)
    status=$?
    printf '%s: %s\n' "$name" "$output"
    add_up "$output" $status
}

variant() { # variant NAME FLAGS [MAKE-VARIABLE...]
    local name=$1 flags=$2
    local build=build/tests/unit/$name
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
    for test in $("${make[@]}" names); do
        run_one "$test" "$build/$test"
    done
    run_one test_commprof_run tests/unit/test_commprof_run.sh "$build/bin/commprof-run" build/lib/libcommprof.so
}

# The tests must not depend on the user's settings.
unset "${!COMMPROF_@}"

# Leak detection is off: the library never frees what other threads may still read. Unbounded growth has its own tests. Frames stay on the
# stack (newer sanitizers move them): by their addresses the library tells calls inside calls.
export ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0:detect_stack_use_after_return=0
export TSAN_OPTIONS=halt_on_error=1:exitcode=66 UBSAN_OPTIONS=print_stacktrace=1

variant plain ''
variant address+undefined -fsanitize=address,undefined ASAN=1 UBSAN=1
variant thread -fsanitize=thread TSAN=1

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
