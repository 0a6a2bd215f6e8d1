#!/bin/bash
# Draws docs/page.png, README's picture of the page, from the recorded run docs/example-run.db.xz: picture.sh
# Records the run that `make demo` has just made, without names, and draws it:               picture.sh --record
# The examples of docs/PYTHON.md, which read it, are then run again; for all of them python3 must have pandas.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [ "${1:-}" = --record ]; then
    build/bin/hvprof-report merge --anonymous build/demo/run "$folder/run.db" >/dev/null
    xz -9e --stdout "$folder/run.db" >docs/example-run.db.xz
    PYTHONPATH=report python3 -B docs/python_examples.py >"$folder/PYTHON.md"
    cp "$folder/PYTHON.md" docs/PYTHON.md
fi

xz --decompress --stdout docs/example-run.db.xz >"$folder/run.db"
build/bin/hvprof-report html "$folder/run.db" --output "$folder/page.html" >/dev/null
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$folder/chromium" \
    --window-size=1240,1500 --screenshot=docs/page.png "file://$folder/page.html" 2>/dev/null
