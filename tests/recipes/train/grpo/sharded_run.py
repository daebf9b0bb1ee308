"""`train.py` on CPUs that accelerate takes for GPUs:

    accelerate launch --config_file configs/launch/fsdp.yaml …
        tests/recipes/train/grpo/sharded_run.py grpo …

accelerate shards models on GPUs only; processes on a CPU it leaves whole, without a word. Here it
is told that they have GPUs, which talk by gloo. Its plugins, TRL and the recipe are as they are.
"""

import os
import warnings
from typing import Any

from accelerate.state import AcceleratorState, PartialState
from accelerate.utils import DistributedType

from recipes.entry import run_training


def take_cpus_for_gpus() -> None:
    os.environ["ACCELERATE_TORCH_DEVICE"] = "cpu"
    PartialState._prepare_backend = lambda *_, **__: ("gloo", DistributedType.MULTI_GPU)
    for state in (PartialState, AcceleratorState):
        state.__init__ = without_cpu(state.__init__)


def without_cpu(initialize: Any) -> Any:
    """As it was, but deaf to `cpu=True`."""

    def as_if_on_gpus(self: Any, cpu: bool = False, **options: Any) -> None:
        initialize(self, cpu=False, **options)

    return as_if_on_gpus


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of libraries that look for the GPUs
    take_cpus_for_gpus()
    run_training()
