"""Reading YAML: what it describes, and keys that stand twice."""

import pytest
import yaml

from rewriting.runtime.files.yaml_text import read_yaml


def test_what_is_written_is_read() -> None:
    assert read_yaml("rate: 1.5\nrewards: {a: 1, b: [2, null]}") == {
        "rate": 1.5,
        "rewards": {"a": 1, "b": [2, None]},
    }


def test_a_merged_mapping_may_be_overridden() -> None:
    text = "base: &base {a: 1, b: 2}\nmine: {<<: *base, b: 3}"
    assert read_yaml(text)["mine"] == {"a": 1, "b": 3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps: 1\nrate: 2\nsteps: 3", "'steps' stands twice\n.*line 3"),
        ("{a: {b: 1, b: 2}}", "'b' stands twice"),
        ("!!python/object/apply:os.getcwd []", "could not determine a constructor"),
    ],
)
def test_what_cannot_be_meant_is_an_error(text: str, message: str) -> None:
    with pytest.raises(yaml.YAMLError, match=message):
        read_yaml(text)
