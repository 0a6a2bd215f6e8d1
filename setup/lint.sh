#!/bin/bash
# Formatting and static checks, with the tools that are at hand; what is not is said. Fails if any tool has something to say.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

python=${PYTHON:-/usr/bin/python3}
failed=0

has() {
    command -v "$1" >/dev/null || {
        echo "SKIPPED: no $1 here"
        return 1
    }
}

check() { # check TITLE COMMAND...
    local title=$1
    shift
    echo "== $title"
    "$@" || {
        echo "FAILED: $title"
        failed=1
    }
}

files() { # files PATTERN...: what git knows or would add
    git ls-files --cached --others --exclude-standard -- "$@" | sort -u | while read -r file; do
        [ -e "$file" ] && echo "$file"
    done
}

# Versions of these tools differ in details; the tree is formatted, and its types are checked, by one of each.
reference=14
ruff_reference=0.17
mypy_reference=2.4
has_the_clang_format() {
    has clang-format || return
    [[ $(clang-format --version) == *version\ $reference.* ]] || {
        echo "SKIPPED: the tree is formatted by clang-format $reference, here is $(clang-format --version)"
        return 1
    }
}

clang_format() {
    local file wrong=0
    for file; do
        clang-format --dry-run --Werror "$file" 2>/dev/null || {
            echo "not formatted; clang-format -i $file"
            wrong=1
        }
    done
    return "$wrong"
}

# One file a run (clang-tidy's checker of variable arguments is confused by several), the largest first. The analyzer takes nearly
# all of the time: tests go without it, sanitizers see them run.
clang_tidy() {
    local flags='-std=c11 -D_GNU_SOURCE -DCOMMPROF_VERSION=\"0\" -DUNIT_BUILD=\"\" -DUNIT_TOP=\"\" -Isrc'
    files 'src/*.c' 'tests/unit/*.c' | xargs ls -S | xargs --max-procs="$(nproc)" --max-args=1 sh -c \
        'case $1 in tests/*) checks=--checks=-clang-analyzer-* ;; esac
        clang-tidy --quiet $checks "$1" -- '"$flags"' 2>/dev/null' clang-tidy
}

# Another compiler's warnings: the library is built with gcc as a rule.
clang_warnings() {
    files 'src/*.c' | xargs --max-args=20 clang -fsyntax-only -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Werror \
        -std=c11 -D_GNU_SOURCE '-DCOMMPROF_VERSION="0"' -Isrc
}

cpp_check() {
    cppcheck --quiet --error-exitcode=1 --std=c11 --enable=warning,portability --inline-suppr -D_GNU_SOURCE \
        '-DCOMMPROF_VERSION="0"' '-DUNIT_BUILD=""' '-DUNIT_TOP=""' -Isrc --suppress=missingIncludeSystem --suppress=nullPointerArithmetic \
        src tests/unit
}

# A thread of the job may have a stack of 16 kB (docs/OVERHEAD.md, "Stack"). Functions that it reaches in a wrapped call have frames of at
# most 1 kB. These files are not reached by one: they work in MPI_Init, MPI_Finalize, MPI_Pcontrol(3), at exit, on threads of ours,
# or in other programs.
off_the_path='^src/(output|run|tools|gpu)/|^src/(base/(settings|filesystems|host|cgroup)|mpi/(launcher|control_variables)|ledger/copy)\.c$'
off_the_path+='|^src/cupti/(cupti_backend|cupti_library|clients|dump)\.c$'

stack_frames() {
    files 'src/*.c' | grep -vE "$off_the_path" | xargs --max-procs="$(nproc)" --max-args=1 sh -c \
        '"${CC:-cc}" -std=c11 -D_GNU_SOURCE -Isrc -O2 -fPIC -fexceptions -Werror=frame-larger-than=1024 -c "$1" -o /dev/null' stack_frames
}

# clang-format and ruff leave comments, long strings and names alone, or are not at hand.
columns() {
    "$python" -c '
import sys
wrong = [f"{name}:{number}" for name in sys.argv[1:]
         for number, line in enumerate(open(name, encoding="utf-8"), 1) if len(line) > 101]
sys.exit("over 100 columns: " + " ".join(wrong) if wrong else 0)
' "$@"
}

# Comments and docstrings begin with a noun or a verb, not with these words.
openings='Of|What|Where|Whom|Those|That'

openings_of_comments() {
    "$python" - "$openings" "$@" <<'END'
import re
import sys

words, *names = sys.argv[1:]
opening = re.compile(rf'(?:/\* |// |^\s*"""|^\s*# )(?:{words})\b')
wrong = False
for name in names:
    before = ""
    for number, line in enumerate(open(name, encoding="utf-8"), 1):
        goes_on = re.match(r"\s*#", line) and re.match(r"\s*# \S", before)
        if opening.search(line) and not goes_on:
            print(f"{name}:{number}: {line.strip()}")
            wrong = True
        before = line
sys.exit(wrong)
END
}

# Subjects of the commits since the check was made; a shallow clone may not have them.
first_checked=7480dda
subjects() {
    git log --no-merges --format='%h %s' "$first_checked.." | awk '
        length(substr($0, index($0, " ") + 1)) > 72 { print $0 ": over 72 characters"; wrong = 1 }
        $2 !~ /:$/ && $0 !~ /^[0-9a-f]+ [^:]+: / { print $0 ": no area"; wrong = 1 }
        END { exit wrong }'
}

mapfile -t c_files < <(files '*.c' '*.h')
mapfile -t shell_files < <(files '*.sh' .ci/run)
mapfile -t python_files < <(files '*.py' report/hvprof-report report/commprof-experiment report/commprof-tune tests/gpu/run)

if has_the_clang_format; then
    check "formatting (clang-format)" clang_format "${c_files[@]}"
fi
if has clang; then
    check "clang's warnings" clang_warnings
fi
if has clang-tidy; then
    check "clang-tidy" clang_tidy
elif has cppcheck; then
    check "cppcheck" cpp_check
fi
check "lines of at most 100 columns" columns Makefile "${c_files[@]}" "${python_files[@]}"
check "openings of comments and docstrings" openings_of_comments \
    "${c_files[@]}" "${shell_files[@]}" "${python_files[@]}"
if git cat-file -e "$first_checked^{commit}" 2>/dev/null; then
    check "subjects of commits" subjects
fi
check "frames of the job's threads are at most 1 kB" stack_frames
if has shellcheck; then
    # 2016: programs for inner shells stand in single quotes; 2317: functions that are called by name look unused
    check "shellcheck" shellcheck --exclude=SC2016,SC2317 "${shell_files[@]}"
fi
if has ruff; then
    check "ruff" ruff check --no-cache "${python_files[@]}"
    if [[ $(ruff --version) == *\ $ruff_reference.* ]]; then
        check "formatting (ruff)" ruff format --check --no-cache "${python_files[@]}"
    fi
fi
if has mypy; then
    if [[ $(mypy --version) == mypy\ $mypy_reference.* ]]; then
        check "mypy" mypy --no-error-summary --cache-dir=/dev/null # pyproject.toml
    else
        echo "SKIPPED: types are checked by mypy $mypy_reference, here is $(mypy --version)"
    fi
fi
check "python: every file compiles" "$python" -c '
import sys
for name in sys.argv[1:]:
    compile(open(name, encoding="utf-8").read(), name, "exec")
' "${python_files[@]}"

[ $failed -eq 0 ] && echo "lint: nothing found"
exit "$failed"
