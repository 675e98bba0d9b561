"""The contract: FastAPI's document with our errors, bodies and examples, and the same read back for `/docs`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from app.web.bodies import Body, BulkBody, CatalogueBody, SubmissionBody
from app.web.operations import EVERY_ROUTE_ERRORS, PROBE_ERRORS, PROBES, ROUTES, RouteDoc, Token
from app.web.problems import PROBLEMS
from app.web.schemas import ProblemOut

DESCRIPTION = (
    "Signed results of GPU-cluster recipe validations in, verdicts out: who confirmed a recipe, who disagrees, and"
    " whether that is still about today's recipe."
)

_BODY_MODELS: Mapping[str, type[Body]] = {
    "submit": SubmissionBody,
    "verify": SubmissionBody,
    "put_recipe": CatalogueBody,
    "put_recipes": BulkBody,
}
_TOKEN = "bearerToken"
_TOKEN_MEANING = (
    "a token of `AICR_EVIDENCE_CATALOGUE_TOKEN`; where it is optional, one of `AICR_EVIDENCE_ADMIN_TOKEN` does the same"
)
_SECURITY: Mapping[Token, list[dict[str, list[str]]]] = {
    Token.OPTIONAL: [{}, {_TOKEN: []}],
    Token.REQUIRED: [{_TOKEN: []}],
}
_MEANINGS = {200: "the answer", 201: "stored", 304: "unchanged since the `ETag` in `If-None-Match`"}


def contract(app: FastAPI) -> bytes:
    """The document as it is served; made when it is first asked for, which takes most of a second."""
    known = getattr(app.state, "contract", None)
    if isinstance(known, bytes):
        return known
    made = json.dumps(describe(app), ensure_ascii=False, indent=2).encode()
    app.state.contract = made
    return made


def describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI 3.1 document of the routes."""
    document = get_openapi(
        title=app.title, version=app.version, openapi_version="3.1.0", description=DESCRIPTION, routes=app.routes
    )
    components: dict[str, Any] = document.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        components.pop(name, None)
    models = [(ProblemOut, "serialization"), *((model, "validation") for model in _BODY_MODELS.values())]
    _, defined = models_json_schema(models, ref_template="#/components/schemas/{model}")  # type: ignore[arg-type]
    components.update(defined["$defs"])
    document["components"]["securitySchemes"] = {
        _TOKEN: {"type": "http", "scheme": "bearer", "description": _TOKEN_MEANING}
    }
    for item in document["paths"].values():
        for operation in item.values():
            _complete(operation)
    return document


def _complete(operation: dict[str, Any]) -> None:
    """Errors, bodies and examples of one operation."""
    name = operation["operationId"]
    doc = ROUTES[name]
    answers: dict[str, Any] = operation["responses"]
    answers.pop("422", None)
    good = next(status for status in ("200", "201") if status in answers)
    answers[good]["description"] = _MEANINGS[int(good)]
    _answer(answers[good], doc)
    for status, meaning in doc.also.items():
        answers[str(status)] = {**answers[good], "description": meaning}
    if doc.tagged:
        answers["304"] = {"description": _MEANINGS[304]}
    for code in (*doc.errors, *(PROBE_ERRORS if name in PROBES else EVERY_ROUTE_ERRORS)):
        _error(answers, code)
    if doc.token in _SECURITY:
        operation["security"] = _SECURITY[doc.token]
    if doc.bodies:
        operation["requestBody"] = {"required": True, "content": _bodies(name, doc)}


def _answer(answer: dict[str, Any], doc: RouteDoc) -> None:
    content: dict[str, Any] = answer.setdefault("content", {})
    if doc.answer is None:
        content.clear()
    elif "application/json" in content:
        content["application/json"]["example"] = doc.answer
    for media_type in doc.raw:
        content[media_type] = {"schema": _raw(media_type)}


def _raw(media_type: str) -> dict[str, str]:
    """What bytes of a media type are to a reader of the contract."""
    if media_type.endswith("+json"):
        return {"type": "object"}
    return {"type": "string"} if media_type.startswith("text/") else {"type": "string", "format": "binary"}


def _bodies(name: str, doc: RouteDoc) -> dict[str, Any]:
    known = _BODY_MODELS.get(name)
    model = {"type": "object"} if known is None else {"$ref": f"#/components/schemas/{known.__name__}"}
    return {
        media_type: {"schema": model if media_type == "application/json" else {"type": "string"}, "example": example}
        for media_type, example in doc.bodies.items()
    }


def _error(answers: dict[str, Any], code: str) -> None:
    """One error code under its status; codes that share a status stand side by side."""
    problem = PROBLEMS[code]
    example = {
        "code": code,
        "message": problem.meaning,
        "requestId": "0b0e6a4e-6c0e-4c86-9f0c-6f6d2b6a3f10",
        "timestamp": "2026-01-11T10:30:00Z",
        "retryable": problem.retryable,
    }
    found = answers.setdefault(
        str(problem.status),
        {
            "description": "",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ProblemOut"}, "examples": {}}},
        },
    )
    content = found["content"]["application/json"]
    if "examples" not in content:
        return  # the status carries an answer of its own (`/ready`)
    content["examples"][code] = {"value": example}
    found["description"] = ", ".join(f"`{each}`" for each in content["examples"])


# --- read back for people ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ParameterLine:
    """One parameter of a route."""

    name: str
    place: str
    required: bool
    type: str
    meaning: str


@dataclass(frozen=True, slots=True)
class BodyExample:
    """A body that can be sent."""

    media_type: str
    example: str


@dataclass(frozen=True, slots=True)
class AnswerExample:
    """An answer by status."""

    status: str
    meaning: str
    example: str


@dataclass(frozen=True, slots=True)
class RouteLine:
    """One operation."""

    anchor: str
    method: str
    path: str
    description: str
    parameters: tuple[ParameterLine, ...]
    bodies: tuple[BodyExample, ...]
    answers: tuple[AnswerExample, ...]


@dataclass(frozen=True, slots=True)
class CodeLine:
    """One error code."""

    code: str
    status: int
    retryable: bool
    meaning: str


@dataclass(frozen=True, slots=True)
class Reference:
    """The contract as a page and `docs/api.md` show it."""

    description: str
    openapi: str
    routes: tuple[RouteLine, ...]
    codes: tuple[CodeLine, ...]


def reference(document: bytes) -> Reference:
    """Read the document back."""
    parsed = json.loads(document)
    routes = tuple(
        _route(path, method, operation) for path, item in parsed["paths"].items() for method, operation in item.items()
    )
    codes = tuple(CodeLine(code, row.status, row.retryable, row.meaning) for code, row in PROBLEMS.items())
    return Reference(parsed["info"]["description"], parsed["openapi"], routes, codes)


def _route(path: str, method: str, operation: Mapping[str, Any]) -> RouteLine:
    content = operation.get("requestBody", {}).get("content", {})
    return RouteLine(
        anchor=operation["operationId"],
        method=method.upper(),
        path=path,
        description=" ".join(operation.get("description", operation.get("summary", "")).split()),
        parameters=tuple(_parameter(item) for item in operation.get("parameters", [])),
        bodies=tuple(BodyExample(kind, _text(item.get("example"))) for kind, item in content.items()),
        answers=tuple(_answer_line(status, item) for status, item in sorted(operation["responses"].items())),
    )


def _parameter(item: Mapping[str, Any]) -> ParameterLine:
    meaning = item.get("description", "")
    return ParameterLine(item["name"], item["in"], item.get("required", False), _type(item.get("schema", {})), meaning)


def _type(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_type(item) for item in schema["anyOf"] if item.get("type") != "null")
    if "enum" in schema:
        return ", ".join(str(value) for value in schema["enum"])
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    return str(schema.get("format") or schema.get("const") or schema.get("type", "any"))


def _answer_line(status: str, item: Mapping[str, Any]) -> AnswerExample:
    content = item.get("content", {}).get("application/json", {})
    example = content.get("example")
    if example is None and content.get("examples"):
        example = next(iter(content["examples"].values()))["value"]
    return AnswerExample(status, item["description"].replace("`", ""), "" if example is None else _text(example))


def _text(example: object) -> str:
    return example if isinstance(example, str) else json.dumps(example, ensure_ascii=False, indent=2)
