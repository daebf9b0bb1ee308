"""Loading a reward of the user's by place; the loader itself is `rewriting/runtime/loading.py`."""

from rewriting.runtime.loading import load_function, suggestion

__all__ = ["load_function", "suggestion"]
