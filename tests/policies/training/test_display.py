"""A row of the log in a few words, and samples as lines of a file."""

import json
from pathlib import Path

from policies.training.display import PPO, REINFORCE, SampleFile, headline


def test_a_headline_says_what_is_known() -> None:
    assert headline({"step": 3, "reward": 1.0, "share_keep": 0.25}, REINFORCE) == (
        "step 3: reward 1.000, share_keep 0.250"
    )
    assert headline({"step": 3, "reward": 0.25}, PPO) == "step 3: reward 0.250"


def test_samples_after_the_checkpoint_are_taken_out_again(tmp_path: Path) -> None:
    file = SampleFile(tmp_path, writes=True)
    file.add([{"step": 1}, {"step": 1}])
    state = file.state_dict()
    file.add([{"step": 2}])
    again = SampleFile(tmp_path, writes=True)
    again.load_state_dict(state)
    again.add([{"step": 2, "text": "ü"}])
    steps = [json.loads(line)["step"] for line in again.path.read_text().splitlines()]
    assert steps == [1, 1, 2]
    fresh = SampleFile(tmp_path, writes=True)  # a new run in the folder begins a new file
    fresh.add([{"step": 9}])
    assert again.path.read_text() == '{"step": 9}\n'
    silent = SampleFile(tmp_path / "other", writes=False)
    silent.add([{"step": 1}])
    assert not silent.path.exists()
