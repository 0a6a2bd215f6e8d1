"""Launches kernels, waits until they are in the profile, and ends: exits.py HOW, of those below.
`workers` needs PyTorch."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

from device import Device, mpi, tell, wait_until

KERNELS = 50


def launch(device: Device) -> None:
    for _ in range(KERNELS):
        device.spin("planted_end", 5_000)
    device.wait_for_all()


def fork(device: Device) -> None:
    """A child that ends by itself, and one that ends as Python does."""
    for how in (os._exit, sys.exit):
        child = os.fork()
        if child == 0:
            how(0)
        os.waitpid(child, 0)


def workers(device: Device) -> None:
    import torch

    loader = torch.utils.data.DataLoader(list(range(64)), batch_size=4, num_workers=2)
    assert sum(int(batch.sum()) for _ in range(2) for batch in loader) == 2 * 2016


if __name__ == "__main__":
    how = sys.argv[1]
    if how == "workers":
        import torch  # noqa: F401  before tracing begins: with it comes the libcupti to use
    mpi().calls_begin()
    gpu = Device()
    gpu.load("planted_end")
    traced = wait_until("tracing")
    launch(gpu)
    traced = traced and wait_until(records=KERNELS)
    tell(kernels=KERNELS, traced=traced)
    if how == "exit in a thread":
        thread = threading.Thread(target=sys.exit)
        thread.start()
        thread.join()
        sys.exit(0)
    elif how == "exit":
        sys.exit(0)
    elif how == "os._exit":
        os._exit(0)
    elif how == "SIGTERM":
        os.kill(os.getpid(), signal.SIGTERM)
    elif how == "SIGKILL":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "MPI_Abort":
        mpi().calls_abort(3)
    elif how in ("fork", "workers"):
        {"fork": fork, "workers": workers}[how](gpu)
        launch(gpu)
        tell(kernels=2 * KERNELS)
    elif how == "reset":  # cudaDeviceReset: no context is left
        gpu.call("cuDevicePrimaryCtxReset_v2", 0)
    elif how == "at work":  # what still runs is not waited for
        gpu.spin("planted_end", 1_000_000_000)
        tell(kernels=KERNELS)
    if how not in ("at work", "normal", "fork", "workers", "reset"):
        time.sleep(60)
        sys.exit("still here")
    mpi().calls_end()
