"""`rewriting ab create`, `serve`, `links`, `revoke` and `backup`, as a user types them."""

import json
import re
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from policies.gated import Guard
from recipes.cli import main
from recipes.shared.gated import Safety
from rewriting import UserError
from rewriting.ab.server.tokens import token_hash
from rewriting.ab.study.store import Ballot, Store
from rewriting.ab.study.study import Study, load_study
from rewriting.safety import Gate
from rewriting.web.hosts import host_name


def run(*arguments: object) -> int:
    try:
        main([str(one) for one in ("ab", *arguments)])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.fixture(autouse=True)
def rules_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The output gate without its models: they would find toy replies senseless."""
    monkeypatch.setattr(Safety, "guard", lambda safety: Guard(Gate()))


def write(path: Path, replies: list[str], **more: Any) -> Path:
    rows = [
        {
            "id": str(n),
            "seeker_post": f"Post {n}.",
            "response_post": "ok",
            "rewritten_response": reply,
        }
        | {name: values[n] for name, values in more.items()}
        for n, reply in enumerate(replies)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def systems(tmp_path: Path) -> list[str]:
    one = write(tmp_path / "one.jsonl", [f"First {n}." for n in range(6)])
    two = write(tmp_path / "two.jsonl", [f"Second {n}." for n in range(6)])
    return ["--system", f"one={one}", "--system", f"two={two}"]


@pytest.fixture
def study(systems: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert run("create", *systems, "--raters", 2, "--output", tmp_path / "study") == 0
    capsys.readouterr()
    return tmp_path / "study"


def gated_study(tmp_path: Path, *flags: str) -> Study:
    """A study of two systems, of which one says what a machine must not say to post 1."""
    first = write(tmp_path / "one.jsonl", ["I am so sorry.", "You are an idiot.", "ok"])
    second = write(tmp_path / "two.jsonl", [f"Second {n}." for n in range(3)])
    systems = ["--system", f"one={first}", "--system", f"two={second}"]
    output = tmp_path / "gated"
    assert run("create", *systems, "--raters", 2, "--repeats", 0, "--output", output, *flags) == 0
    return load_study(output)


def test_replies_that_the_output_gate_rejects_are_left_out_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = gated_study(tmp_path)
    assert sorted(item.seeker_post for item in study.of_kind("item")) == ["Post 0.", "Post 2."]
    assert study.left_out == {"rejected by the output gate": 1}
    assert study.unsafe_candidates is False
    assert "1 rejected by the output gate" in capsys.readouterr().out


def test_a_researcher_may_show_them_and_the_study_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = gated_study(tmp_path, "--allow-unsafe-candidates")
    assert len(study.of_kind("item")) == 3
    assert study.unsafe_candidates is True
    assert study.left_out == {}
    assert "no output gate has seen the replies" in capsys.readouterr().out


def test_a_persons_own_reply_is_not_the_gates_to_reject(tmp_path: Path) -> None:
    rude = [{"seeker_post": "Post.", "response_post": "You are an idiot."}]
    own, changed = tmp_path / "own.jsonl", tmp_path / "changed.jsonl"
    own.write_text(json.dumps(rude[0] | {"rewritten_response": "You are an idiot."}))
    changed.write_text(json.dumps(rude[0] | {"rewritten_response": "I am so sorry."}))
    systems = ["--system", f"own={own}", "--system", f"changed={changed}"]
    assert run("create", *systems, "--raters", 1, "--output", tmp_path / "s") == 0
    assert load_study(tmp_path / "s").left_out == {}


def test_create_says_what_it_made(
    systems: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("create", *systems, "--raters", 3, "--repeats", 0, "--output", tmp_path / "s") == 0
    out = capsys.readouterr().out
    assert "6 pairs of 2 systems, 3 votes each, by 3 raters with 12 pages each" in out
    assert f"rewriting ab serve {tmp_path / 's'}" in out


def made(systems: list[str], output: Path, *settings: object) -> Study:
    assert run("create", *systems, "--raters", 2, "--output", output, *settings) == 0
    return load_study(output)


def test_every_text_and_rule_can_be_set(systems: list[str], tmp_path: Path) -> None:
    consent = tmp_path / "consent.txt"
    consent.write_text("Do you agree?\n")
    resources = tmp_path / "help.txt"
    resources.write_text("Call us.\n\nWrite to us.\n")
    practice = tmp_path / "practice.jsonl"
    practice.write_text('{"seeker_post": "p", "better": "b", "worse": "w", "note": "n"}\n')
    study = made(
        systems, tmp_path / "study", "--consent", consent, "--help-resources", resources,
        "--practice", practice, "--attention", "none", "--no-ties", "--criterion",
        "warm=Which is warmer?", "--minimum-attention", 0.5, "--title", "A study", "--limit", 4,
        "--votes-per-item", 1, "--seed", 9,
    )  # fmt: skip
    assert study.consent == "Do you agree?"
    assert study.help_resources == ("Call us.", "Write to us.")
    assert [item.note for item in study.of_kind("practice")] == ["n"]
    assert study.of_kind("attention") == []
    assert [(one.name, one.question) for one in study.criteria] == [("warm", "Which is warmer?")]
    assert (study.allow_ties, study.title, study.seed) == (False, "A study", 9)
    assert study.exclusion.minimum_attention == 0.5
    assert len(study.of_kind("item")) == 4


def test_files_made_elsewhere_are_joined_by_id_or_post(tmp_path: Path) -> None:
    one, two = tmp_path / "one.jsonl", tmp_path / "two.csv"
    one.write_text('{"id": "7", "seeker_post": "Post.", "response_post": "First."}\n')
    two.write_text("id,seeker_post,response_post\n7,Post.,Second.\n")
    systems = ["--system", f"one={one}", "--system", f"two={two}"]
    (item,) = made(systems, tmp_path / "by id").of_kind("item")
    assert (item.exchange_id, dict(item.replies)) == ("7", {"one": "First.", "two": "Second."})
    one.write_text('{"seeker_post": "me@example.org", "response_post": "First."}\n')
    two.write_text("seeker_post,response_post\nme@example.org,Second.\n")
    (item,) = made(systems, tmp_path / "by post").of_kind("item")
    assert len(bytes.fromhex(item.exchange_id)) == 12, "a fingerprint, not the post"


def test_crisis_posts_are_left_out_unless_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    posts = ["I am going to kill myself tonight.", "My cat is ill.", "I lost my keys."]
    systems = []
    for name in ("one", "two"):
        file = write(
            tmp_path / f"{name}.jsonl", [f"{name[0]}{n}" for n in range(3)], seeker_post=posts
        )
        systems += ["--system", f"{name}={file}"]
    study = made(systems, tmp_path / "study")
    assert posts[0] not in {item.seeker_post for item in study.of_kind("item")}
    assert "left out: 1 crisis or possible crisis" in capsys.readouterr().out
    kept = made(systems, tmp_path / "kept", "--include-crisis")
    assert posts[0] in {item.seeker_post for item in kept.of_kind("item")}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--system", "one"], "give a name and a file"),
        (["--system", "one=ONE", "--system", "one=ONE"], "another system has this name"),
        (["--system", "one=nowhere.jsonl", "--system", "two=ONE"], "no such file"),
        (["--system", "one=ONE", "--system", "two=BAD"], "bad.jsonl, line 1"),
        (["--system", "First=ONE", "--system", "two=ONE"], "tells raters about the system 'First'"),
        (["--system", "one=ONE", "--system", "two=ONE"], "no pair is left to judge"),
        (["--system", "one=ONE", "--system", "two=TWO", "--criterion", "warm"], "--criterion warm"),
        (["--system", "one=ONE", "--system", "two=TWO", "--votes-per-item", "9"], "lower --votes"),
        (
            ["--system", "one=ONE", "--system", "two=TWO", "--consent", "no.txt"],
            "cannot read no.txt",
        ),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "ONE": write(tmp_path / "one.jsonl", ["First 0."]),
        "TWO": write(tmp_path / "two.jsonl", ["Second 0."]),
        "BAD": tmp_path / "bad.jsonl",
    }
    files["BAD"].write_text('{"id": "0", "seeker_post": "Post 0."}\n')
    for name, path in files.items():
        arguments = [one.replace(f"={name}", f"={path}") for one in arguments]
    assert run("create", *arguments, "--raters", 2, "--output", tmp_path / "study") == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "study").exists()


def links_in(text: str) -> dict[int, str]:
    return {int(n): token for n, token in re.findall(r"rater (\d+): \S+/r/(\S+)", text)}


def test_links_are_shown_once_renewed_added_and_revoked(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def links(*arguments: object) -> dict[int, str]:
        assert run("links", study, *arguments) == 0
        return links_in(capsys.readouterr().out)

    first = links("--base-url", "https://study.example/")
    assert list(first) == [1, 2]
    assert links() == {}
    renewed = links("--renew", 2)
    assert list(renewed) == [2]
    assert list(links("--add", 2)) == [3, 4]
    assert run("revoke", study, 1) == 0
    with Store(study) as store:
        owners = [store.rater_of(token_hash(t)) for t in (first[1], first[2], renewed[2])]
    assert owners == [None, None, 2]
    assert run("revoke", study, 17) == 1
    assert "there is no rater 17. Raters: 1, 2, 3, 4." in capsys.readouterr().err


def test_a_backup_is_a_study_with_all_votes(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Store(study) as store:
        store.vote("key", 1, "item", Ballot({"empathic": "one"}, "one", "two"))
        copy = tmp_path / "copy"
        assert run("backup", study, "--output", copy) == 0
        store.vote("later", 1, "another", Ballot({"empathic": "one"}, "one", "two"))
    assert "1 votes, integrity checked" in capsys.readouterr().out
    assert load_study(copy) == load_study(study)
    with Store(copy) as copied:
        assert len(copied.votes()) == 1
    assert run("backup", study, "--output", copy) == 1
    assert run("backup", study, "--output", study, "--overwrite") == 1
    assert run("backup", study, "--output", copy, "--overwrite") == 0
    with Store(copy) as copied:
        assert len(copied.votes()) == 2


def test_a_backup_never_replaces_another_study(
    study: Path, systems: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    made(systems, other, "--seed", 9)
    votes = tmp_path / "votes"
    votes.mkdir()
    (votes / "votes.sqlite").touch()
    before = (other / "study.json").read_bytes()
    for output in (other, votes):
        assert run("backup", study, "--output", output, "--overwrite") == 1
        assert "holds another study" in capsys.readouterr().err
    assert (other / "study.json").read_bytes() == before
    assert run("create", *systems, "--raters", 2, "--output", votes) == 1
    assert "votes of another study" in capsys.readouterr().err


def test_posts_that_name_a_system_are_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    posts = ["Is this Northwind?", "My cat is ill."]
    systems = []
    for name in ("northwind", "two"):
        file = write(tmp_path / f"{name}.jsonl", [f"{name[0]}0", f"{name[0]}1"], seeker_post=posts)
        systems += ["--system", f"{name}={file}"]
    made(systems, tmp_path / "study")
    assert "warning: the posts of 1 pair contain 'northwind'" in capsys.readouterr().out


def test_a_port_that_is_taken_is_one_line(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert run("serve", study, "--port", taken.getsockname()[1]) == 1
    assert "Try another --port." in capsys.readouterr().err


def test_without_the_extra_serve_says_what_to_install(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "rewriting.ab.server.server", raising=False)
    monkeypatch.delattr("rewriting.ab.server.server", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert run("serve", study) == 1
    assert "empathic-rewriting[ab]" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["create", "serve", "links", "revoke", "backup"])
def test_every_command_and_option_is_on_the_page(name: str) -> None:
    import typer

    from recipes.commands.ab.app import app

    page = (Path(__file__).parents[4] / "docs" / "ab-tests.md").read_text()
    command: Any = typer.main.get_command(app)
    options = [
        (parameter.opts + parameter.secondary_opts)[-1]
        for parameter in command.commands[name].params
        if parameter.param_type_name == "option" and parameter.name != "help"
    ]
    assert f"rewriting ab {name}" in page
    assert [option for option in options if f"{option}" not in page] == []


@pytest.mark.parametrize(
    "given",
    [
        "study.example.org",
        "Study.Example.org.",
        "study.example.org:8000",
        "https://study.example.org",
        "https://study.example.org:8443/",
    ],
)
def test_a_host_may_be_given_as_a_browser_shows_it(given: str) -> None:
    assert host_name(given) == "study.example.org"


@pytest.mark.parametrize(
    "given", ["", "https://", "study.example.org/r", "https://a.org/?x", "a b", "a.org:port", "[x"]
)
def test_what_is_no_host_is_refused_in_one_line(given: str) -> None:
    with pytest.raises(UserError, match=r"is no host name\. Give the name alone") as caught:
        host_name(given)
    assert "\n" not in str(caught.value)
