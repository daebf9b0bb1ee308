"""`rewriting serve`: rewriting, scoring and feedback over HTTP, and a page to try them."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recipes.shared.extras import extra_needed
from recipes.shared.flags.checks import check_identifier, check_rewriter
from recipes.shared.flags.dialect import examples
from recipes.shared.flags.options import BehindProxy, Classifier, HelpText, Host, Port, takes
from recipes.shared.gated import Safety
from recipes.shared.rewriter import CANDIDATES_HELP, MARGIN_HELP, Rewriter
from recipes.shared.rows import feedback_row, output_row, score_row
from rewriting import __version__
from rewriting.changes import changes
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS, Exchange
from rewriting.serve.limits import Limits
from rewriting.web.hosts import base_url, host_name, listen

if TYPE_CHECKING:
    from policies.best_of import BestOf
    from policies.gated import Choice, Gated, Guard
    from rewards.identifiers.assessment import Assessment, Identifier
    from rewriting.loop import Policy

TOKEN = "REWRITING_TOKEN"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
DEFAULT = Limits()
EPILOG = examples(
    "rewriting serve",
    "rewriting serve --policy generic --port 0",
    "rewriting serve --host 0.0.0.0 --require-token --log requests.jsonl",
    "rewriting serve --behind-proxy --allow-host rewriting.example.org --rate 30",
)


@dataclass(frozen=True)
class Options:
    """Options of `rewriting serve`."""

    policy: Annotated[
        str, typer.Option(help="Policy that rewrites, as in rewriting rewrite: a name or a folder.")
    ] = "bank"
    host: Host = "127.0.0.1"
    port: Port = 8080
    model: Annotated[
        str, typer.Option(help="Identifier that scores replies, as in rewriting score.")
    ] = "in-context"
    num_candidates: Annotated[int, typer.Option(min=0, help=CANDIDATES_HELP)] = 0
    margin: Annotated[float | None, typer.Option(min=0, help=MARGIN_HELP)] = None
    rewards: Annotated[
        str | None,
        typer.Option(help="Rewards that rank the candidates, as YAML, as in rewriting rewrite."),
    ] = None
    classifier: Classifier = None
    help_text: HelpText = None
    require_token: Annotated[
        bool,
        typer.Option(
            "--require-token",
            help="Answer only clients that show a token: the one in the environment variable "
            f"{TOKEN}, or else a new one, which is printed.",
        ),
    ] = False
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Host name that this server is reached by, such as rewriting.example.org; may be "
            "repeated. Addresses, localhost and this machine's own name need none."
        ),
    ] = None
    behind_proxy: BehindProxy = False
    max_characters: Annotated[
        int,
        typer.Option(min=1, max=20_000, help="Maximum length of a post or reply, in characters."),
    ] = DEFAULT.characters
    rate: Annotated[
        int,
        typer.Option(
            min=0, help="Maximum number of requests per minute from one address; 0: no limit."
        ),
    ] = DEFAULT.per_minute
    timeout: Annotated[
        float,
        typer.Option(
            min=0.1, help="How many seconds a request waits for its answer before it is refused."
        ),
    ] = DEFAULT.seconds
    max_batch: Annotated[
        int,
        typer.Option(min=1, help="Maximum number of requests that the models work on together."),
    ] = DEFAULT.batch
    max_waiting: Annotated[
        int,
        typer.Option(
            min=1, help="Maximum number of requests that wait for the models; more are refused."
        ),
    ] = DEFAULT.waiting
    log: Annotated[
        Path | None,
        typer.Option(
            help="File for the log, a line of JSON per request; by default standard error."
        ),
    ] = None
    log_texts: Annotated[
        bool, typer.Option("--log-texts", help="Also log posts, replies and rewrites.")
    ] = False


@takes(Options)
def serve(options: Options) -> None:
    """Serve rewriting, scoring and feedback until interrupted (Ctrl-C), and a page to try them.

    Models are loaded once, and requests that arrive together are worked on together. Everything
    passes the safety gate.
    """
    import signal

    with extra_needed("serve"):  # starlette, uvicorn
        from rewriting.serve import server as site
    from rewriting.serve.logs import Log

    hosts = [host_name(name) for name in options.allow_host or []]
    who = Rewriter(
        options.policy,
        options.num_candidates,
        options.margin,
        options.rewards,
        Safety(options.classifier, options.help_text),
    )
    check_rewriter(who)
    check_identifier(options.model)
    token = chosen_token() if options.require_token else None
    limits = Limits(
        options.max_characters,
        options.rate,
        options.timeout,
        options.max_batch,
        options.max_waiting,
    )
    with listen(options.host, options.port) as listener, open_log(options.log) as stream:
        print(f"loading the models of {options.policy} …", file=sys.stderr, flush=True)
        desk = Desk.load(who, options.model)
        server = site.RewritingServer(
            desk,
            Log(stream, texts=options.log_texts),
            limits=limits,
            token=token,
            hosts={*hosts, options.host},
        )
        listener.listen(128)  # whoever comes before the first request is answered waits
        say_where(base_url(options.host, listener), options.host, token)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # after uvicorn has finished with it
        site.serve(server, listener, behind_proxy=options.behind_proxy)


def chosen_token() -> str:
    """The token in the environment, or a new one. On a command line everybody could read it."""
    import secrets

    token = os.environ.get(TOKEN, "").strip() or secrets.token_urlsafe(24)
    if len(token) < 16 or not token.isascii() or not token.isprintable() or " " in token:
        raise UserError(f"{TOKEN} needs 16 or more letters, digits and signs without a space.")
    return token


def open_log(path: Path | None) -> Any:
    """The file that is written on to, or standard error."""
    from contextlib import nullcontext

    if path is None:
        return nullcontext(sys.stderr)
    try:
        return path.expanduser().open("a", encoding="utf-8")
    except OSError as error:
        raise UserError(f"--log {path}: cannot be written ({error.strerror}).") from error


def say_where(base: str, host: str, token: str | None) -> None:
    """The address of the page. A token goes behind a #, which browsers keep to themselves."""
    print(f"page: {base}/" + (f"#token={token}" if token else ""))
    print(f"API:  {base}/openapi.json", flush=True)
    if token is None and host not in LOOPBACK:
        print(
            f"warning: whoever reaches {host} can use this server; --require-token asks for a "
            "token.",
            file=sys.stderr,
        )


@dataclass(frozen=True)
class Desk:
    """The models that answer requests, behind the gate: `rewriting.serve.server.Desk`."""

    policy: Policy | BestOf
    guard: Guard
    identifier: Identifier

    @classmethod
    def load(cls, who: Rewriter, model: str) -> Desk:
        from rewards.identifiers.named import load_identifier
        from rewards.models import default_batch_size

        guard = who.safety.guard()
        identifier = load_identifier(model, batch_size=default_batch_size())
        return cls(who.load(), guard, identifier)

    @property
    def help_text(self) -> str:
        return self.guard.gate.help_text

    @functools.cached_property
    def about(self) -> dict[str, Any]:
        terms = getattr(getattr(self.policy, "scorer", None), "terms", {})
        rewards = {
            name: {"weight": term.weight, "about": first_sentence(term.reward)}
            for name, term in terms.items()
        }
        return {
            "policy": self.policy.name,
            "version": __version__,
            "rewards": rewards,
        }

    def rewrite(self, exchanges: Sequence[Exchange], *, seed: int) -> list[dict[str, Any]]:
        from policies.gated import rewrite_safely

        rows = rewrite_safely(self.policy, exchanges, self.guard, seed=seed, others=True)
        return [self.rewrite_row(row, seed) for row in rows]

    def rewrite_row(self, row: Gated, seed: int) -> dict[str, Any]:
        found = output_row(row, self.policy.name, seed, self.help_text)
        original = row.exchange.response_post
        return found | {
            "changes": change_rows(original, found["rewritten_response"]),
            "alternatives": [alternative_row(other) for other in row.others],
        }

    def score(self, exchanges: Sequence[Exchange]) -> list[dict[str, Any]]:
        return [
            score_row(row.exchange, assessment) | self.facts(row, assessment)
            for row, assessment in self.assessed(exchanges)
        ]

    def feedback(self, exchanges: Sequence[Exchange]) -> list[dict[str, Any]]:
        """Feedback on each reply. Where the gate keeps a machine from rewriting, no advice."""
        answers = []
        for row, assessment in self.assessed(exchanges):
            found = {"id": row.exchange.id} | feedback_row(assessment)
            if row.held_back:
                found |= {name: found[name] | NO_ADVICE for name in MECHANISMS}
            answers.append(found | self.facts(row, assessment))
        return answers

    def assessed(self, exchanges: Sequence[Exchange]) -> list[tuple[Gated, Assessment]]:
        """The exchanges with the verdict of the gate and the assessment of the identifier."""
        from policies.gated import checked

        seeker_posts = [exchange.seeker_post for exchange in exchanges]
        response_posts = [exchange.response_post for exchange in exchanges]
        assessments = self.identifier.assess(seeker_posts, response_posts)
        return list(zip(checked(exchanges, self.guard), assessments, strict=True))

    def facts(self, row: Gated, assessment: Assessment) -> dict[str, Any]:
        """What a scored reply has beside its levels: where the rationales stand, the verdict."""
        from rewriting.report.marks import rationale_spans

        text, judged = row.exchange.response_post, assessment.judgements
        spans = {name: rationale_spans(text, judged[name].rationales) for name in MECHANISMS}
        return {
            "spans": {name: [list(span) for span in found] for name, found in spans.items()},
            "safety": row.row(self.help_text),
        }


NO_ADVICE = {"missing": "", "example": ""}


def change_rows(before: str, after: str) -> list[dict[str, Any]]:
    return [change.row() for change in changes(before, after)]


def alternative_row(choice: Choice) -> dict[str, Any]:
    rewrite, rewards = choice
    return {
        "rewritten_response": rewrite.rewritten_response,
        "edits": [edit.row() for edit in rewrite.edits],
        "rewards": dict(rewards),
        "changes": change_rows(rewrite.exchange.response_post, rewrite.rewritten_response),
    }


def first_sentence(reward: Any) -> str:
    """What a reward is, as its docstring begins; empty where it has none of its own."""
    while isinstance(reward, functools.partial):
        reward = reward.func
    told = inspect.getdoc(reward if inspect.isfunction(reward) else type(reward)) or ""
    return " ".join(told.split("\n\n")[0].split())
