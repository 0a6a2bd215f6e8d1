#!/bin/bash
# Writes a manual page to stdout: setup/man.sh PAGE COMMPROF-RUN. The settings, as `commprof-run --help` prints them, replace the line
#
#     .\" settings as options        or        .\" settings as variables
set -euo pipefail

page=$1 program=$2

settings_as() { # settings_as options|variables
    env -i COMMPROF_CONFIG=/dev/null "$program" --help | awk -v form="$1" '
        function finish() { if (value != "" && value != "not set" && value !~ /, from /) print "Default: " value "."; value = "" }
        /^  --/ { finish(); is_setting = $3 ~ /^COMMPROF_/ }
        /^  --/ && is_setting {
            print form == "options" ? ".It Fl " substr($1, 2) " Ar " $2 : ".It Ev " $3
            value = substr($0, index($0, "   [") + 4) # an argument may have brackets
            sub(/\]$/, "", value)
        }
        /^        / && is_setting { sub(/^ +/, ""); gsub(/\\/, "\\e"); gsub(/\. /, ".\n"); print }
        END { finish() }'
}

while IFS= read -r line; do
    case $line in
        '.\" settings as '*) settings_as "${line#'.\" settings as '}" ;;
        *) printf '%s\n' "$line" ;;
    esac
done <"$page"
