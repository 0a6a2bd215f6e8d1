#!/bin/bash
# Fetches NVTX for the tests of it, from the Python package registry into build/nvtx: the package nvtx and NVIDIA's own headers. Without
# them these tests are skipped.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

python=${PYTHON:-/usr/bin/python3}
[ -d build/nvtx/nvtx ] && [ -d build/nvtx/nvidia ] && exit 0
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --target build/nvtx nvtx==0.2.16 nvidia-nvtx-cu12==12.9.79 ||
    echo "setup/nvtx.sh: NVTX cannot be had here; its tests are skipped"
