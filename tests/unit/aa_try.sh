#!/bin/bash
# Builds the library, the programs and the unit tests for AArch64 and runs the tests under a user-mode emulator. An emulator shows neither
# AArch64's memory ordering (the host's applies) nor the cost of its counter. Run from the top folder.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

compiler=${AARCH64_CC:-aarch64-linux-gnu-gcc}
emulator=${AARCH64_EMULATOR:-qemu-aarch64}
root=${AARCH64_ROOT:-/usr/aarch64-linux-gnu}
libraries=${AARCH64_LIBRARIES:-/usr/lib/aarch64-linux-gnu} # may contain libsqlite3.so.0
build=build/tests/unit/aarch64
passed=0 failed=0 skipped=0

finish() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
    exit
}

skip() { # skip WHAT WHY
    echo "SKIPPED $1: $2"
    ((skipped += 1))
}

run() { # run PROGRAM [ARGUMENT...]
    "$emulator" -L "$root" -E LD_LIBRARY_PATH="$libraries" -E UNIT_EMULATED=yes "$@" </dev/null
}

run_tests() { # run_tests PROGRAM NAME...: in pairs, on all cores; the emulator opens /proc/self/exe by this name, from wherever the test is
    export emulator root libraries
    export -f run
    printf '%s\n' "$@" | xargs --max-procs="$(nproc)" --max-args=2 bash -c \
        'run "$0/$1" "$2" >"$0/logs/$2" 2>&1' "$PWD/$build"
}

add_up() { # add_up NAME
    local output line
    output=$(<"$build/logs/$1")
    printf '%s: %s\n' "$1" "$output"
    line=${output##*$'\n'}
    if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
        ((passed += BASH_REMATCH[1], failed += BASH_REMATCH[2], skipped += BASH_REMATCH[3]))
    else
        ((failed += 1))
    fi
}

for tool in "$compiler" "$emulator"; do
    if ! command -v "$tool" >/dev/null; then
        skip "all tests for AArch64" "no $tool here"
        finish
    fi
done
make=(make --no-print-directory --silent --jobs="$(nproc)" --file=tests/unit/Makefile BUILD="$build" CC="$compiler")
mkdir -p "$build"
if false; then
    cat "$build.log"
    echo "FAILED to build for AArch64"
    ((failed += 1))
    finish
fi

unset "${!COMMPROF_@}"
rm -rf "$build/logs"
mkdir -p "$build/logs"
chosen=()
while read -r program name; do
    if [ "$name" = test_provenance ] && ! "$build/$program" "$name" >/dev/null 2>&1; then
        skip "$name" "it starts itself anew, and this kernel does not start AArch64 programs (binfmt_misc)"
    elif [ "$name" = test_store ] && ! [ -e "$libraries/libsqlite3.so.0" ] && ! [ -e "$root/lib/libsqlite3.so.0" ]; then
        skip "$name" "no libsqlite3.so.0 for AArch64 in $libraries"
    else
        chosen+=("$program" "$name")
    fi
done < <("${make[@]}" names)
run_tests "${chosen[@]}"
for name in "$build"/logs/*; do
    add_up "$(basename "$name")"
done

if [[ $(run "$build/bin/commprof-run" --version) == commprof\ * ]]; then
    ((passed += 1))
else
    echo "FAILED commprof-run does not start"
    ((failed += 1))
fi
for file in "$build/lib/libcommprof.so" "$build/bin/commprof-run"; do
    newest=$(objdump -p "$file" | grep --only-matching 'GLIBC_[0-9.]*' | sort --version-sort | tail -n 1)
    if [ "$newest" = GLIBC_2.17 ]; then
        ((passed += 1))
    else
        echo "FAILED $file needs $newest"
        ((failed += 1))
    fi
done
finish
