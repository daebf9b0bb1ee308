"""Processes that share a job."""

from __future__ import annotations

import os


def join_processes() -> None:
    """Make one job of the processes that torchrun started on CPUs.

    Unless accelerate is told that there is no GPU, each would be a job of its own, all of them
    writing to the same files.
    """
    if "LOCAL_RANK" in os.environ:
        import torch

        if not torch.cuda.is_available():
            os.environ.setdefault("ACCELERATE_USE_CPU", "true")
