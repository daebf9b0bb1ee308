"""Settings with which a supervised recipe is done in seconds."""

from typing import Any

SMALL: dict[str, Any] = {
    "layers": 1,
    "rank": 2,
    "max_tokens": 24,
    "epochs": 1,
    "batch_size": 4,
    "learning_rate": 0.01,
}
"""Of a recipe that tunes an encoder."""
