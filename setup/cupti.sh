#!/bin/bash
# Fetches CUPTI for the tests of it, from the Python package registry into build/cupti: NVIDIA's own headers and libraries of several
# releases, cuda.h and nvml.h. No GPU and no driver is needed. Without them these tests are skipped, but for what CUDA has brought itself.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

python=${PYTHON:-/usr/bin/python3}
while read -r package version; do
    [ -d "build/cupti/$version/nvidia" ] && continue
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "build/cupti/$version" "$package==$version" ||
        echo "setup/cupti.sh: $package $version cannot be had here; its tests are skipped"
done <<'END'
nvidia-cuda-runtime 13.0.96
nvidia-cuda-crt 13.0.88
nvidia-cuda-cupti-cu11 11.8.87
nvidia-cuda-cupti-cu12 12.4.127
nvidia-cuda-cupti-cu12 12.9.79
nvidia-cuda-cupti 13.0.85
nvidia-cuda-cupti 13.1.115
nvidia-cuda-cupti 13.2.86
nvidia-cuda-cupti 13.3.75
nvidia-cuda-cupti 13.5.25
nvidia-nvml-dev-cu11 11.8.86
nvidia-nvml-dev 13.4.92
END
