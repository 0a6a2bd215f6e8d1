"""Steps of JAX while the profiler traces: jax_steps.py STEPS [trace]. `trace`: then as many under
JAX's own profiler, which says how many kernels it saw, and as many after it."""

from __future__ import annotations

import glob
import os
import sys
import tempfile

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from device import mpi, tell, wait_until  # noqa: E402


@jax.jit
def step(data: jax.Array) -> jax.Array:
    return jnp.tanh(data @ data) * 0.5 + data


def kernels_in(folder: str) -> int:
    """On lines of streams of GPUs."""
    (path,) = glob.glob(f"{folder}/**/*.xplane.pb", recursive=True)
    planes = [
        plane
        for plane in jax.profiler.ProfileData.from_file(path).planes
        if plane.name.startswith("/device:GPU")
    ]
    return sum(
        1
        for plane in planes
        for line in plane.lines
        if line.name.startswith("Stream")
        for _ in line.events
    )


def take(data: jax.Array, steps: int) -> jax.Array:
    for _ in range(steps):
        data = step(data)
    return data.block_until_ready()


if __name__ == "__main__":
    steps, profiled = int(sys.argv[1]), "COMMPROF_OUTPUT" in os.environ
    mpi().calls_begin()
    data = take(jnp.ones((256, 256)), 3)
    if profiled and not wait_until("tracing"):
        tell(failed="the profiler does not trace")
    data = take(data, steps)
    if sys.argv[2:] == ["trace"]:
        with tempfile.TemporaryDirectory() as folder:
            with jax.profiler.trace(folder):
                data = take(data, steps)
            tell(jax_sees=kernels_in(folder))
        if profiled:
            tell(goes_on=wait_until("tracing"))
        take(data, steps)
    tell(steps=steps)
    mpi().calls_end()
