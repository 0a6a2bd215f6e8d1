#!/bin/bash
# Packages of Python that only `hvprof-report fleet` and its tests use, from the package registry:
#
#     setup/engines.sh NAME...     for example duckdb
#
# prints the folder to put into PYTHONPATH. They are installed once, into build/engines, and change nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-/usr/bin/python3}
folder=$(realpath -m "${BUILD:-build}")/engines
venv=$folder/venv
if [ ! -e "$venv" ]; then
    "$python" -m venv --system-site-packages "$venv" >&2
fi
for name; do
    if [ ! -e "$folder/has-$name" ]; then
        "$venv/bin/python3" -m pip install --quiet --disable-pip-version-check --only-binary=:all: "$name" >&2 ||
            "$venv/bin/python3" -m pip install --quiet --disable-pip-version-check "$name" >&2
        touch "$folder/has-$name"
    fi
done
"$venv/bin/python3" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'
