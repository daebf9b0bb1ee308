"""`evaluate.py audit` for real, on the bundled sample and on toy rows, with cheap rewards."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recipes.entry import run_evaluation
from rewards.audit.stock import NONSENSE, STOCK, read_sentences
from tests.rewards.terms.test_classifier import EMOTIONS, logits, write_bert
from tests.rewriting.report.test_page import Elements

ROWS = [
    {
        "id": name,
        "seeker_post": post,
        "response_post": f"{said} Rest a bit.",
        "emotional_reactions": 0,
        "interpretations": 0,
        "explorations": 2,
        "rationales": {"explorations": [said]},
    }
    for name, post, said in (
        ("a", "I failed <b>again</b>.", "Which question was the worst?"),
        ("b", "My dog died.", "What was <your> dog's name?"),
        ("c", "My dog ran away.", "Where did your dog run to?"),
        ("d", "She left.", "How did that make you feel?"),
    )
]
REWARD = """
def long(sentence, **_):
    return [float(len((s or "").split())) for s in sentence]

def silent(sentence, **_):
    return [None] * len(sentence)

class Times:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, sentence, **_):
        return [self.factor * words for words in long(sentence)]
"""


@pytest.fixture
def audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs the command with a reward of the user's and gives the JSON it has written."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(REWARD, encoding="utf-8")

    def command(*arguments: Any) -> Any:
        rewards = ["--rewards", "{mine.py:long: 1, repetition: 0}", "--json", "out.json"]
        run_evaluation(["audit", *rewards, *map(str, arguments)])
        return json.loads(Path("out.json").read_text(encoding="utf-8"))

    return command


def test_the_bundled_sample(audit: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    found = audit()
    assert found["n"] == 24
    assert (found["data"], found["split"], found["seed"]) == ("sample:test", "all", 0)
    assert found["rewards"] == {"mine.py:long": 1, "repetition": 0}
    assert list(found["stock"]) == read_sentences(STOCK)
    assert list(found["nonsense"]) == read_sentences(NONSENSE)
    assert set(found["terms"]) == {"long", "repetition"}
    assert found["stock"]["What happened?"] == {
        "matched_wins": 100,  # of two words; a carrier has three at the least
        "total": 2,
        "terms": {"long": 2, "repetition": 0},
    }
    assert sum(one["n"] for one in found["mechanisms"].values()) == 24
    assert "I am so sorry." in found["carriers_that_are_stock"]["sentences"]
    shown = capsys.readouterr().out
    assert "every stock sentence" in shown
    assert "real sentences are stock themselves" in shown


def test_every_figure_is_explained(audit: Callable[..., Any]) -> None:
    docs = Path(__file__).parents[4] / "docs"
    page = (docs / "audit.md").read_text(encoding="utf-8")
    assert [name for name in audit() if f"`{name}`" not in page] == []


def test_rewards_of_a_yaml_file(audit: Callable[..., Any]) -> None:
    lines = "rewards:\n  repetition: {weight: 2, n: 1}\nlimit: 3\nhtml: out.html\njson: yaml.json\n"
    Path("audit.yaml").write_text(lines, encoding="utf-8")
    run_evaluation(["audit", "--config", "audit.yaml"])
    found = json.loads(Path("yaml.json").read_text(encoding="utf-8"))
    assert (found["n"], found["rewards"]) == (3, {"repetition": {"weight": 2, "n": 1}})


def test_a_classifier_by_name_and_terms_by_path(audit: Callable[..., Any], tmp_path: Path) -> None:
    folder = write_bert(tmp_path / "tiny-emotions", EMOTIONS)
    rewards = f"""
    hf:{folder}: {{label: caring, text: sentence}}
    mine.py:long: {{weight: 0.5, timeout: 60, retries: 1}}
    mine:Times: {{weight: 0, factor: 3, name: triple}}
    """
    found = audit("--rewards", rewards, "--limit", 3, "--html", "out.html")
    assert list(found["rewards"]) == [f"hf:{folder}", "mine.py:long", "mine:Times"]
    assert list(found["terms"]) == ["tiny-emotions", "long", "triple"]
    caring = float(logits(folder, "What happened?").softmax(-1)[1])
    paid = found["stock"]["What happened?"]
    assert paid["terms"] == pytest.approx({"tiny-emotions": caring, "long": 2, "triple": 6})
    assert paid["total"] == pytest.approx(caring + 0.5 * 2)
    assert ">tiny-emotions<" in Path("out.html").read_text(encoding="utf-8")


def test_own_rows_and_own_stock_sentences(
    audit: Callable[..., Any], jsonl: Callable[..., Path]
) -> None:
    Path("stock.txt").write_text("# mine\nOh no.\nTell me all about that now.\n", encoding="utf-8")
    found = audit("--data", jsonl(ROWS[:2] + ROWS[3:]), "--stock", "stock.txt")
    # b's sentence has markup in it and is no prose. Five and six words against two and six.
    assert found["n"] == 2
    wins = {sentence: one["matched_wins"] for sentence, one in found["stock"].items()}
    assert wins == {"Oh no.": 100, "Tell me all about that now.": 0}
    assert found["matched_beats_every_stock"] == 0
    # Not on this list, but all its words are stock, and a seed of the probe resembles it.
    assert found["carriers_that_are_stock"]["sentences"] == ["How did that make you feel?"]


def test_a_reward_is_given_the_columns_of_the_data(
    audit: Callable[..., Any], jsonl: Callable[..., Path]
) -> None:
    Path("topics.py").write_text(
        "def exams(topic, explorations, **_):\n"
        "    return [float(t == 'exams') + e for t, e in zip(topic, explorations)]\n",
        encoding="utf-8",
    )
    file = jsonl([ROWS[0] | {"topic": "exams"}, *ROWS[2:]])
    found = audit("--data", file, "--rewards", "{topics.py:exams: 1}")
    # All have the level 2, and one of three posts is about exams.
    assert found["n"] == 3
    assert found["total"]["matched"] == found["total"]["stock"] == pytest.approx(2 + 1 / 3)


def test_limit_counts_posts_that_are_audited(
    audit: Callable[..., Any], jsonl: Callable[..., Path]
) -> None:
    unlabelled = {"seeker_post": "Hm.", "response_post": "Hm hm."}
    assert audit("--data", jsonl([unlabelled, *ROWS]), "--limit", 2)["n"] == 2


def test_the_page(audit: Callable[..., Any], jsonl: Callable[..., Path]) -> None:
    audit("--data", jsonl(ROWS), "--html", "out.html")
    page = Path("out.html").read_text(encoding="utf-8")
    elements = Elements(page)
    assert not {"link", "img", "iframe", "object", "script"} & {tag for tag, _ in elements.found}
    assert len(elements.of("article")) == 3
    assert "I failed &lt;b&gt;again&lt;/b&gt;." in page
    assert "Which question was the worst?" in page
    assert "What is your neighbour&#39;s bicycle pump?" in page
    # The best paid stock sentence is the longest.
    best = page.split("the best paid stock sentence")[1].split("</tr>")[0]
    assert "I&#39;m so sorry to hear that, I know how you feel." in best
    assert ">11.000<" in best


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "bare.jsonl"], "bare.jsonl holds no labelled exchange"),
        (["--data", "zero.jsonl"], "none of the 1 rows of zero.jsonl has a sentence of 3 to 40"),
        (["--data", "one.jsonl"], "at least two seeker posts"),
        (["--stock", "empty.txt"], "empty.txt holds no sentence"),
        (["--stock", "nowhere.txt"], "nowhere.txt"),
        (["--rewards", "{applause: 1}"], "there is no reward 'applause'"),
        (["--rewards", "{mine.py:long: 0, repetition: 0}"], "every reward has the weight 0"),
        (["--rewards", "{mine.py:silent: 1}"], "apply to none of these 24 posts: every term"),
        (["--json", "there.json"], "there.json exists"),
        (["--html", "there.json"], "there.json exists"),
        (["--limit", "-1"], "limit must be 0 or more"),
    ],
)
def test_mistakes_are_one_line(
    audit: Callable[..., Any],
    jsonl: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    jsonl([{"seeker_post": "a", "response_post": "b"}], "bare.jsonl")
    jsonl([{**ROWS[0], "explorations": 0}], "zero.jsonl")
    jsonl(ROWS[:1], "one.jsonl")
    Path("empty.txt").write_text("# no sentence\n", encoding="utf-8")
    Path("there.json").write_text("{}", encoding="utf-8")
    with pytest.raises(SystemExit) as caught:
        audit(*arguments)
    assert caught.value.code == 1
    assert message in capsys.readouterr().err


def test_a_file_is_replaced_when_asked(audit: Callable[..., Any]) -> None:
    Path("out.json").write_text("{}", encoding="utf-8")
    assert audit("--overwrite", "true")["n"] == 24


def rewrites(path: Path, *rows: tuple[str, str]) -> Path:
    lines = [
        {
            "seeker_post": post,
            "response_post": "Rest a bit.",
            "rewritten_response": f"{said} Rest a bit." if said else "Rest a bit.",
            "edits": [{"operation": "insert", "position": 0, "sentence": said}] if said else [],
        }
        for post, said in rows
    ]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


SHARED_WORDS = """
def shared(seeker_post, sentence, **_):
    return [
        float(len(set(p.lower().split()) & set((s or "").lower().split())))
        for p, s in zip(seeker_post, sentence)
    ]
"""


def test_sentences_of_an_agent_that_are_meant_for_somebody_lose_elsewhere(
    tmp_path: Path, audit: Callable[..., Any]
) -> None:
    Path("words.py").write_text(SHARED_WORDS, encoding="utf-8")
    file = rewrites(
        tmp_path / "rewritten.jsonl",
        ("my dog died", "Your dog died ."),
        ("i failed maths", "You failed maths ?"),
        ("she left", ""),
    )
    found = audit("--rewrites", file, "--rewards", "{words.py:shared: 1}", "--overwrite", "true")
    assert (found["rewrites"], found["changed"], found["questions"]) == (3, 2, 50)
    assert found["earned_at_home"] == 2
    assert found["earned_elsewhere"] == 0
    assert (found["lost_elsewhere"], found["home_wins"]) == (100, 100)
    stock = audit("--rewrites", file, "--rewards", "{mine.py:long: 1}", "--overwrite", "true")
    assert stock["lost_elsewhere"] == 0


def test_terms_with_a_scale_are_measured_in_it(tmp_path: Path, audit: Callable[..., Any]) -> None:
    Path("words.py").write_text(SHARED_WORDS, encoding="utf-8")
    rows = ("my dog died", "Your dog died ."), ("i failed maths", "You failed maths ?")
    file = rewrites(tmp_path / "rewritten.jsonl", *rows)
    found = audit("--rewrites", file, "--rewards", "{words.py:shared: {scale: std}}")
    # The values are 2 and 2 at home and six times 0, of which the sample deviation is √(6/7).
    assert found["earned_at_home"] == pytest.approx(2 / (6 / 7) ** 0.5)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rewritten_response": None}, "line 2: rewritten_response is None; it must be a text"),
        ({"seeker_post": 5}, "line 2: seeker_post is 5; it must be a text"),
        ({"edits": None}, "line 2: edits is None; it must be a list of edits"),
        ({"edits": ["insert"]}, "line 2: edits is ['insert']; it must be a list of edits"),
    ],
)
def test_a_damaged_file_of_rewrites_is_one_line(
    tmp_path: Path,
    audit: Callable[..., Any],
    capsys: pytest.CaptureFixture[str],
    changed: dict[str, Any],
    message: str,
) -> None:
    file = rewrites(tmp_path / "rewritten.jsonl", ("my dog died", "Oh."), ("she left", "Oh no."))
    first, second = file.read_text(encoding="utf-8").splitlines()
    file.write_text(f"{first}\n{json.dumps(json.loads(second) | changed)}", encoding="utf-8")
    with pytest.raises(SystemExit):
        audit("--rewrites", file)
    assert message in capsys.readouterr().err


def test_a_file_without_edits_is_refused(
    tmp_path: Path, audit: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plain.jsonl"
    file.write_text(json.dumps({"seeker_post": "a", "response_post": "b"}), encoding="utf-8")
    with pytest.raises(SystemExit):
        audit("--rewrites", file)
    assert "line 1: rewritten_response is missing" in capsys.readouterr().err
