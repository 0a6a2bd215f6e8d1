#!/bin/bash
# test_commprof_run.sh PROGRAM LIBRARY: commprof-run from the user's point of view. One function per test; the last line has the counts. The
# library is preloaded into programs without sanitizers, so it must be the plain one, even if PROGRAM is sanitized.
set -uo pipefail

folder=$(realpath "$(mktemp -d)")
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/bin" "$folder/lib"
cp "${1:-build/bin/commprof-run}" "$folder/bin/commprof-run"
cp "${2:-build/lib/libcommprof.so}" "$folder/lib/libcommprof.so"
run=$folder/bin/commprof-run
library=$folder/lib/libcommprof.so
cd "$folder" || exit 1
unset LD_PRELOAD "${!COMMPROF_@}"

shows() { # shows VARIABLE OPTION...: the variable's value in a program that is started with these options
    local variable=$1
    shift
    "$run" "$@" printenv "$variable" || echo "(unset)"
}

is() { # is EXPECTED ACTUAL
    [ "$1" = "$2" ] || {
        echo "expected: $1"
        echo "actual:   $2"
        return 1
    }
}

holds() { # holds TEXT PATTERN
    [[ $1 == *"$2"* ]] || {
        echo "not in it: $2"
        echo "$1"
        return 1
    }
}

the_program_runs_with_its_arguments() {
    is "a b|c" "$("$run" bash -c 'echo "$1|$2"' x 'a b' c)"
}

the_programs_exit_status_is_passed_on() {
    "$run" bash -c 'exit 7'
    is 7 $?
}

the_library_is_preloaded() {
    is "$library" "$("$run" printenv LD_PRELOAD)"
}

what_is_preloaded_already_comes_after_it() {
    is "$library:libc.so.6" "$(LD_PRELOAD=libc.so.6 "$run" printenv LD_PRELOAD)" &&
        is "$library:libc.so.6:libm.so.6" "$(LD_PRELOAD=' libc.so.6  libm.so.6:' "$run" printenv LD_PRELOAD)"
}

a_sanitizer_that_is_preloaded_stays_first() {
    # No files of these names are there: the loader drops them with a warning.
    is "libasan.so.99:libclang_rt.tsan.so:$library:libc.so.6:libubsan.so.99" \
        "$(LD_PRELOAD=libasan.so.99:libclang_rt.tsan.so:libc.so.6:libubsan.so.99 "$run" printenv LD_PRELOAD 2>/dev/null)"
}

a_library_that_is_preloaded_behind_another_tool_comes_first() {
    is "$library:libc.so.6" "$(LD_PRELOAD=libc.so.6:$library "$run" printenv LD_PRELOAD)" &&
        is "$library:libc.so.6" "$(LD_PRELOAD=/no/such/libcommprof.so:libc.so.6 "$run" printenv LD_PRELOAD 2>/dev/null)"
}

a_path_that_the_loader_would_split_is_preloaded_through_a_link() {
    local name
    for name in 'a blank' a:colon 'a$ORIGIN'; do
        mkdir "$name" && cp -r bin lib "$name" &&
            is "$(printf '%s\n' "$folder/$name/lib/libcommprof.so" 0)" \
                "$(TMPDIR=$folder "$name/bin/commprof-run" bash -c 'realpath "$LD_PRELOAD"; grep -c "cannot be" <(ls 2>&1)')" || return
    done
    is 3 "$(find "commprof-$UID" -name 'lib-*' | wc -l)"
}

asan_lets_the_library_come_before_it() {
    is "verify_asan_link_order=0" "$(ASAN_OPTIONS='' shows ASAN_OPTIONS)" &&
        is "detect_leaks=0:verify_asan_link_order=0" "$(ASAN_OPTIONS=detect_leaks=0 shows ASAN_OPTIONS "$run")"
}

an_empty_preload_is_no_entry() {
    is "$library" "$(LD_PRELOAD='' "$run" printenv LD_PRELOAD)"
}

the_library_is_not_preloaded_twice() {
    is "$library" "$("$run" "$run" printenv LD_PRELOAD)"
}

an_option_sets_its_variable() {
    is "/scratch/run" "$(shows COMMPROF_OUTPUT --output /scratch/run)" &&
        is "/scratch/run" "$(shows COMMPROF_OUTPUT --output=/scratch/run)" &&
        is "8M" "$(shows COMMPROF_MEMORY --memory 8M --quiet)" &&
        is "a=b" "$(shows COMMPROF_OUTPUT --output=a=b)"
}

an_option_stands_above_its_variable() {
    is "8M" "$(COMMPROF_MEMORY=16M shows COMMPROF_MEMORY --memory 8M)"
}

the_last_of_two_options_counts() {
    is "9M" "$(shows COMMPROF_MEMORY --memory 8M --memory 9M)"
}

without_an_option_the_variable_is_passed_on() {
    is "16M" "$(COMMPROF_MEMORY=16M shows COMMPROF_MEMORY)" && is "(unset)" "$(shows COMMPROF_MEMORY)"
}

who_asks_for_a_profile_gets_a_full_one_unless_told_otherwise() {
    echo "profile = site" >site.conf
    is "(unset)" "$(shows COMMPROF_PROFILE)" && export COMMPROF_CONFIG=$folder/site.conf &&
        is full "$(shows COMMPROF_PROFILE)" && is full "$(COMMPROF_PROFILE='' shows COMMPROF_PROFILE)" &&
        is site "$(shows COMMPROF_PROFILE --profile site)" && is off "$(COMMPROF_PROFILE=off shows COMMPROF_PROFILE)"
}

a_flag_alone_means_on() {
    is on "$(shows COMMPROF_QUIET --quiet)" && is off "$(shows COMMPROF_START --start off)" && is off "$(shows COMMPROF_START --start=off)" &&
        is off "$(shows COMMPROF_ARGUMENTS --no-arguments)"
}

a_program_after_a_flag_is_not_its_value() {
    is ran "$("$run" --quiet echo ran)"
}

options_of_the_program_are_its_own() {
    is "--output x --help" "$("$run" echo --output x --help)"
}

two_dashes_end_the_options() {
    printf '#!/bin/sh\necho ran\n' >--odd && chmod +x -- --odd
    is ran "$(PATH=$folder:$PATH "$run" --quiet -- --odd)"
}

an_unknown_option_is_named() {
    local said status
    said=$("$run" --colour red true 2>&1)
    status=$?
    is 2 $status && holds "$said" --colour
    said=$("$run" -o x true 2>&1)
    status=$?
    is 2 $status && holds "$said" -o
}

an_option_without_its_value_is_named() {
    local said status
    said=$("$run" --output 2>&1)
    status=$?
    is 2 $status && holds "$said" --output
}

without_a_program_it_says_how_it_is_used() {
    local said status
    said=$("$run" 2>&1)
    status=$?
    is 2 $status && holds "$said" usage
    "$run" --quiet -- 2>/dev/null
    is 2 $?
}

a_program_that_is_not_found_gives_127() {
    local said status
    said=$("$run" ./no-such-program 2>&1)
    status=$?
    is 127 $status && holds "$said" "./no-such-program: No such file or directory"
}

a_program_that_may_not_run_gives_126() {
    local said status
    echo text >plain-file
    said=$("$run" ./plain-file 2>&1)
    status=$?
    is 126 $status && holds "$said" "./plain-file: Permission denied"
}

a_library_that_is_missing_gives_126() {
    local said status
    mkdir -p elsewhere/bin && cp "$run" elsewhere/bin/
    said=$(elsewhere/bin/commprof-run true 2>&1)
    status=$?
    is 126 $status && holds "$said" elsewhere/lib/libcommprof.so
}

it_works_from_wherever_it_is_installed() {
    mkdir -p prefix links && cp -r bin lib prefix/ && ln -s ../prefix/bin/commprof-run links/
    is "$folder/prefix/lib/libcommprof.so" "$(prefix/bin/commprof-run printenv LD_PRELOAD)" &&
        is "$folder/prefix/lib/libcommprof.so" "$(links/commprof-run printenv LD_PRELOAD)"
}

the_host_is_measured_once_before_the_program_which_is_not_profiled() {
    local file first
    is "(unset)" "$(shows LD_PRELOAD --canary canary)" && file=$(echo canary/*) && is "canary/$(uname -n)" "$file" || return
    first=$(cat "$file")
    [[ $first =~ ^\{\"arithmetic_ns\":\ [1-9][0-9]+,\ \"memory_ns\":\ [1-9][0-9]+\}$ ]] || {
        echo "$first"
        return 1
    }
    is "$first" "$("$run" --canary canary cat "$file")" && is "$library" "$(shows LD_PRELOAD --canary canary "$run")"
}

processes_of_a_host_wait_for_the_one_that_measures() {
    # Appended: coreutils' cat copies files within the kernel, where two that share an offset may write to the same place.
    for ((i = 0; i < 8; i++)); do "$run" --canary together sh -c 'cat together/*' & done >>"$folder/seen"
    wait
    is "8 1" "$(wc -l <"$folder/seen") $(sort -u "$folder/seen" | wc -l)"
}

each_host_of_a_job_is_measured() {
    local other=(unshare --user --map-root-user --uts sh -c 'hostname other && exec "$@"' sh)
    "${other[@]}" true 2>/dev/null || return 0
    for ((i = 0; i < 3; i++)); do
        "$run" --canary hosts sh -c 'cat "hosts/$(uname -n)"' &
        "${other[@]}" "$run" --canary hosts sh -c 'cat "hosts/$(uname -n)"' &
    done >>"$folder/seen-of-hosts"
    wait
    is "6 2" "$(wc -l <"$folder/seen-of-hosts") $(sort -u "$folder/seen-of-hosts" | wc -l)" &&
        is "$(printf '%s\n' other "$(uname -n)" | sort)" "$(printf '%s\n' hosts/* | sed 's,hosts/,,' | sort)"
}

a_host_that_cannot_be_measured_is_reported_and_the_program_runs() {
    touch file
    is "commprof-run: file: the host cannot be measured: Not a directory
ran" "$("$run" --canary file echo ran 2>&1)" && is 2 "$("$run" --canary 2>/dev/null; echo $?)"
}

launchers_are_refused() {
    local launcher said status
    for launcher in mpirun mpiexec /usr/bin/mpirun.openmpi srun mpiexec.hydra orterun; do
        said=$("$run" $launcher -n 2 true 2>&1)
        status=$?
        is 2 $status && holds "$said" "$(basename $launcher)" || return
    done
}

a_program_that_is_only_called_like_a_launcher_runs() {
    printf '#!/bin/sh\necho ran\n' >srunner && chmod +x srunner
    is ran "$("$run" ./srunner)"
}

help_prints_every_setting_with_the_value_in_force() {
    local said
    said=$(COMMPROF_OUTPUT=/scratch/mine COMMPROF_VERBOSE=2 "$run" --memory 8192K --help)
    is 0 $? && holds "$said" "--output DIR   COMMPROF_OUTPUT   [/scratch/mine, from COMMPROF_OUTPUT]" &&
        holds "$said" "COMMPROF_MEMORY   [8M, from COMMPROF_MEMORY]" && holds "$said" "COMMPROF_VERBOSE   [2, from COMMPROF_VERBOSE]" && holds "$said" "COMMPROF_CLOCK   [auto]" && holds "$said" "COMMPROF_LEDGER   [not set]" &&
        holds "$said" --exclude && holds "$said" --start && holds "$said" --quiet
}

help_says_which_file_a_value_comes_from() {
    local said
    printf 'memory = 8M\nquiet = on\n' >site.conf
    said=$("$run" --config site.conf --quiet=off --help)
    is 0 $? && holds "$said" "COMMPROF_MEMORY   [8M, from site.conf]" && holds "$said" "COMMPROF_QUIET   [off, from COMMPROF_QUIET]"
}

help_names_what_is_malformed() {
    local said
    said=$(COMMPROF_MEMORY=much COMMPROF_TYPO=1 "$run" --help 2>&1 >/dev/null)
    holds "$said" COMMPROF_MEMORY=much && holds "$said" COMMPROF_TYPO
}

version_is_said() {
    [[ $("$run" --version) =~ ^commprof\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
}

nothing_is_printed_otherwise() {
    is "" "$("$run" --quiet --memory 8M true 2>&1)"
}

passed=0 failed=0
for test in $(declare -F | awk '$3 ~ /_/ { print $3 }'); do
    if said=$($test 2>&1); then
        ((passed += 1))
    else
        ((failed += 1))
        printf 'FAILED %s\n%s\n' "$test" "$said"
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
