#!/bin/bash
# Draws the pictures of docs/gallery from the recorded run docs/example-run.db.xz: picture.sh
# Records the run that `make demo` has just made, without names, and draws it:     picture.sh --record
# The examples of docs/PYTHON.md, which read it, are then run again; for all of them python3 must have pandas.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [ "${1:-}" = --record ]; then
    build/bin/hvprof-report export --format sqlite --anonymous --output "$folder/train.db" build/demo/run >/dev/null
    xz -9e --stdout "$folder/train.db" >docs/example-run.db.xz
    PYTHONPATH=report python3 -B docs/python_examples.py >"$folder/PYTHON.md"
    cp "$folder/PYTHON.md" docs/PYTHON.md
fi
run=$folder/train.db
xz --decompress --stdout docs/example-run.db.xz >"$run"

plot() { # plot PICTURE COMMAND...
    build/bin/hvprof-report "${@:2}" --plot "docs/gallery/$1.png" "$run" >/dev/null
}

shoot() { # shoot PICTURE PAGE WIDTH,HEIGHT [OPTION...]
    chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$folder/chromium" \
        --virtual-time-budget=4000 --window-size="$3" "${@:4}" --screenshot="docs/gallery/$1.png" "file://$2" 2>/dev/null
}

plot sizes sizes --call Allreduce,Bcast
plot durations latency --call Allreduce --bytes :
plot late late
plot hvprof hvprof

build/bin/hvprof-report html "$run" --output "$folder/page.html" >/dev/null
# The page refuses styles that are not its own, so all but one section is cut out.
/usr/bin/python3 - "$folder/page.html" "$folder/timeline.html" <<'END'
import re
import sys
from pathlib import Path

page, timeline = map(Path, sys.argv[1:])
others = r'<nav.*?</nav>|<header>.*?</header>|<section id="(?!(?:a-step|the-run)-in-time")[^"]*".*?</section>'
timeline.write_text(re.sub(others, "", page.read_text(), flags=re.DOTALL))
END
shoot page "$folder/page.html" 1240,1300
shoot page-dark "$folder/page.html" 1240,1300 --blink-settings=preferredColorScheme=0
shoot timeline "$folder/timeline.html" 1240,560

# 128 colours are enough, and a third of the bytes. Pillow comes with matplotlib.
/usr/bin/python3 - docs/gallery/*.png <<'END'
import sys
from PIL import Image

for path in sys.argv[1:]:
    Image.open(path).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)
END
