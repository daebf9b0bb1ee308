"""YAML as people write it: settings and mappings of rewards."""

from __future__ import annotations

from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, but of two equal keys it does not take the last one in silence."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"{key.value!r} stands twice", key.start_mark
                    )
                seen.add((key.tag, key.value))
        return super().construct_mapping(node, deep=deep)


def read_yaml(text: str) -> Any:
    """The value that a text of YAML describes; raises yaml.YAMLError where there is none."""
    return yaml.load(text, _Loader)
