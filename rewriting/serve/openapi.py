"""The description of the server for programs: OpenAPI 3.1, with the limits that this one has."""

from __future__ import annotations

from typing import Any, Final

from rewriting.exchange import MECHANISMS
from rewriting.serve.asking import LARGEST_SEED, LONGEST_ID
from rewriting.serve.limits import Limits

Schema = dict[str, Any]
TEXT: Final[Schema] = {"type": "string"}
TEXTS: Final[Schema] = {"type": "array", "items": TEXT}
FLAG: Final[Schema] = {"type": "boolean"}
LEVEL: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": 2}
EMPATHY: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": 6}
REWARDS: Final[Schema] = {
    "type": "object",
    "description": "The value of each reward term; null where a term does not apply.",
    "additionalProperties": {"type": ["number", "null"]},
}


def an_object(description: str, /, **properties: Schema) -> Schema:
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": list(properties),
    }


def may_lack(schema: Schema, *names: str) -> Schema:
    """An object in which some fields may be missing."""
    return schema | {"required": [name for name in schema["required"] if name not in names]}


def listed(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def said(schema: Schema, description: str) -> Schema:
    return schema | {"description": description}


def per_mechanism(description: str, schema: Schema) -> Schema:
    return an_object(description, **dict.fromkeys(MECHANISMS, schema))


SPANS = per_mechanism(
    "Where the rationales stand in response_post: first character, and the one after the last.",
    listed({"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}),
)
CHANGES = listed(
    an_object(
        "A sentence before and after, with the white space behind it. All before together are the "
        "reply as it was, all after the rewrite.",
        before=TEXT,
        after=TEXT,
        edited=said(FLAG, "Whether it is an edit that can be taken or left."),
    )
)
EDITS = listed(
    an_object(
        "An edit of the policy, in order.",
        operation={"enum": ["insert", "replace", "keep"]},
        position={"type": ["integer", "null"]},
        sentence=TEXT,
    )
)
SAFETY = may_lack(
    an_object(
        "What the gate says. Whatever is not clear is not rewritten.",
        verdict=said(TEXT, "clear, or why a machine keeps out: possible, crisis, …"),
        reasons=TEXTS,
        help=said(TEXT, "Whom to call; there unless the verdict is clear."),
        rejected=said(TEXTS, "Why candidates were not given out."),
    ),
    "help",
    "rejected",
)
EXCHANGE: Final[dict[str, Schema]] = {
    "id": TEXT,
    "seeker_post": TEXT,
    "response_post": TEXT,
}
ALTERNATIVE = an_object(
    "Another candidate that the gate lets through; the reply as it was may be among them.",
    rewritten_response=TEXT,
    edits=EDITS,
    rewards=REWARDS,
    changes=CHANGES,
)
ANSWERS: Final[dict[str, Schema]] = {
    "rewrite": an_object(
        "A line as `rewriting rewrite` writes it, with its changes and alternatives.",
        **EXCHANGE,
        rewritten_response=TEXT,
        edits=EDITS,
        rewards=REWARDS,
        safety=SAFETY,
        policy=TEXT,
        seed={"type": "integer"},
        ai_assisted=said(FLAG, "Always true: say so wherever the text is shown."),
        changes=CHANGES,
        alternatives=listed(ALTERNATIVE),
    ),
    "score": an_object(
        "A line as `rewriting score` writes it, with the places of the rationales.",
        **EXCHANGE,
        history=TEXTS,
        **dict.fromkeys(MECHANISMS, LEVEL),
        probabilities=per_mechanism("Of the levels 0, 1 and 2.", listed({"type": "number"})),
        empathy=EMPATHY,
        rationales=per_mechanism("The words that carry the empathy.", TEXTS),
        spans=SPANS,
        safety=SAFETY,
    ),
    "feedback": an_object(
        "What `rewriting feedback --json` prints, with the places of the rationales.",
        id=TEXT,
        empathy=EMPATHY,
        **dict.fromkeys(
            MECHANISMS,
            an_object(
                "What to tell of a mechanism. Without advice unless the verdict is clear.",
                level=LEVEL,
                rationales=TEXTS,
                found=TEXT,
                missing=TEXT,
                example=TEXT,
            ),
        ),
        spans=SPANS,
        safety=SAFETY,
    ),
}
HEALTH = an_object(
    "The server answers, and this is what stands behind it.",
    status={"const": "ok"},
    waiting=said({"type": "integer"}, "Requests that wait for the models."),
    policy=TEXT,
    version=TEXT,
    rewards={
        "type": "object",
        "description": "What ranks the candidates.",
        "additionalProperties": an_object("A term.", weight={"type": "number"}, about=TEXT),
    },
    token_needed=FLAG,
)
ANSWERS["score"] = may_lack(ANSWERS["score"], "history")
ERROR = may_lack(an_object("What was wrong.", error=TEXT, field=TEXT), "field")
REFUSALS: Final = {
    400: "The body is not JSON that can be read.",
    401: "The token is missing or wrong.",
    413: "The body is too large.",
    415: "The body is not sent as application/json.",
    422: "A field is missing, unknown, too long or of the wrong kind.",
    429: "Too many requests of one address; Retry-After says when to come again.",
    503: "Too many requests wait, or the models took too long; Retry-After as above.",
}
ABOUT: Final = {
    "rewrite": "Rewrite a reply to be more empathic",
    "score": "Score how empathic a reply is, and where",
    "feedback": "Tell a supporter what a reply shows and what is missing",
}


def asked(limits: Limits) -> Schema:
    text = TEXT | {"minLength": 1, "maxLength": limits.characters}
    seed = {"type": "integer", "minimum": 0, "maximum": LARGEST_SEED, "default": 0}
    fields = an_object(
        "An exchange to work on.",
        seeker_post=said(text, "What somebody in need of support wrote."),
        response_post=said(text, "The reply to it."),
        history=said(listed(text) | {"maxItems": limits.turns}, "Earlier turns, oldest first."),
        id=said(TEXT | {"maxLength": LONGEST_ID}, "Comes back in the answer."),
        seed=said(seed, "Of /rewrite: another seed, other candidates. Others are not batched."),
    )
    return may_lack(fields, "history", "id", "seed") | {"additionalProperties": False}


def openapi(limits: Limits, *, token: bool = False) -> dict[str, Any]:
    """The whole description."""
    from importlib.metadata import version

    def content(schema: Schema) -> dict[str, Any]:
        return {"application/json": {"schema": schema}}

    def reference(name: str) -> Schema:
        return {"$ref": f"#/components/schemas/{name}"}

    refusals = {
        str(status): {"description": text, "content": content(reference("error"))}
        for status, text in REFUSALS.items()
    }
    paths: dict[str, Any] = {
        f"/{name}": {
            "post": {
                "operationId": name,
                "summary": ABOUT[name],
                "requestBody": {"required": True, "content": content(reference("asked"))},
                "responses": {
                    "200": {"description": "Done.", "content": content(reference(name))},
                    **refusals,
                },
            }
        }
        for name in ANSWERS
    }
    healthy = {"description": "The server is up.", "content": content(reference("health"))}
    paths["/health"] = {"get": {"operationId": "health", "responses": {"200": healthy}}}
    described: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "Empathic rewriting",
            "version": version("empathic-rewriting"),
            "description": "Not clinically validated: let a person read a rewritten reply before "
            "another person gets it.",
        },
        "paths": paths,
        "components": {
            "schemas": ANSWERS | {"asked": asked(limits), "health": HEALTH, "error": ERROR}
        },
    }
    if token:
        described["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for name in ANSWERS:
            paths[f"/{name}"]["post"]["security"] = [{"token": []}]
    return described
