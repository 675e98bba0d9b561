"""The contract: a snapshot, an example for every route, and no status that the table does not know."""

import json
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from app.web import schemas
from app.web.app import bare_app
from app.web.bodies import BulkBody, CatalogueBody, SubmissionBody
from app.web.openapi import contract
from app.web.operations import ROUTES
from app.web.problems import PROBLEMS
from tests.support.htmlcheck import Page
from tools.generate_docs import API, OPENAPI, api_page

DUE = {
    "POST /evidence",
    "GET /evidence",
    "GET /evidence/{digest}",
    "GET /evidence/{digest}/archive",
    "GET /evidence/{digest}/files/{path}",
    "GET /evidence/{digest}/{source}/report",
    "GET /evidence/{digest}/{source}/predicate",
    "GET /evidence/{digest}/{source}/bundle",
    "POST /verify",
    "GET /attempts",
    "GET /attempts/{attempt_id}",
    "GET /recipes",
    "PUT /recipes",
    "GET /recipes/{recipe}",
    "PUT /recipes/{recipe}",
    "GET /answer",
    "POST /answer",
    "GET /allowlist",
    "GET /allowlist/versions",
    "GET /sources",
    "GET /sources/{source}",
    "GET /health",
    "GET /ready",
}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    made: dict[str, Any] = json.loads(contract(bare_app()))
    return made


def operations(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        f"{method.upper()} {path}": operation
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }


def test_the_contract_equals_its_snapshot(document: dict[str, Any]) -> None:
    """A changed contract is a decision: `make docs` writes the snapshot anew, and the difference is reviewed."""
    assert document == json.loads(OPENAPI.read_text())


def test_the_committed_page_is_the_contracts() -> None:
    assert API.read_text() == api_page()


def test_every_route_is_described_and_it_is_openapi_3_1(document: dict[str, Any]) -> None:
    assert document["openapi"] == "3.1.0"
    assert set(operations(document)) >= DUE
    for operation in operations(document).values():
        assert operation["description"]
        assert operation["operationId"] in ROUTES


def test_every_route_has_an_example_of_its_answer_or_is_bytes(document: dict[str, Any]) -> None:
    for name, operation in operations(document).items():
        good = next(answer for status, answer in operation["responses"].items() if status in {"200", "201"})
        contents = good["content"]
        assert contents, name
        for media_type, content in contents.items():
            if media_type == "application/json":
                assert content["example"], name
            else:
                kind = "object" if media_type.endswith("+json") else "string"
                assert content["schema"]["type"] == kind, (name, media_type)
        for content in operation.get("requestBody", {}).get("content", {}).values():
            assert content["example"], name


def test_errors_are_the_envelope_with_codes_of_the_table(document: dict[str, Any]) -> None:
    for name, operation in operations(document).items():
        for status, answer in operation["responses"].items():
            if status.startswith(("2", "3")) or (name == "GET /ready" and status == "503"):
                continue
            content = answer["content"]["application/json"]
            assert content["schema"] == {"$ref": "#/components/schemas/ProblemOut"}, name
            for code, example in content["examples"].items():
                assert PROBLEMS[code].status == int(status)
                schemas.ProblemOut.model_validate(example["value"], by_alias=True)
    assert "HTTPValidationError" not in document["components"]["schemas"]


COMPUTED = {
    "GET /evidence",
    "GET /evidence/{digest}",
    "GET /evidence/{digest}/{source}/report",
    "GET /attempts",
    "GET /attempts/{attempt_id}",
    "GET /recipes",
    "GET /recipes/{recipe}",
    "GET /answer",
    "GET /allowlist",
    "GET /allowlist/versions",
    "GET /sources",
    "GET /sources/{source}",
}
WITH_BODY = {"POST /evidence", "POST /verify", "POST /answer", "PUT /recipes", "PUT /recipes/{recipe}"}
PUSHES = {"PUT /recipes", "PUT /recipes/{recipe}"}
SUBMISSIONS = {"POST /evidence", "POST /verify"}
PROBES = {"GET /health", "GET /ready"}


def test_each_status_stands_at_exactly_the_routes_that_answer_it(document: dict[str, Any]) -> None:
    found = {name: set(operation["responses"]) for name, operation in operations(document).items()}
    assert {name for name, statuses in found.items() if "304" in statuses} == COMPUTED
    for status in ("408", "413", "415"):
        assert {name for name, statuses in found.items() if status in statuses} == WITH_BODY, status
    assert {name for name, statuses in found.items() if "401" in statuses} == PUSHES | SUBMISSIONS
    assert {name for name, statuses in found.items() if "400" not in statuses} == PROBES
    for status in ("429", "503"):
        assert {name for name, statuses in found.items() if status not in statuses} <= PROBES, status
    assert document["paths"]["/recipes"]["get"]["responses"]["304"] == {
        "description": "unchanged since the `ETag` in `If-None-Match`"
    }


def test_a_push_is_said_to_want_the_token_and_a_submission_to_take_one(document: dict[str, Any]) -> None:
    assert document["components"]["securitySchemes"] == {
        "bearerToken": {
            "type": "http",
            "scheme": "bearer",
            "description": "a token of `AICR_EVIDENCE_CATALOGUE_TOKEN`; where it is optional, one of "
            "`AICR_EVIDENCE_ADMIN_TOKEN` does the same",
        }
    }
    secured = {name: one["security"] for name, one in operations(document).items() if "security" in one}
    assert secured == {
        "PUT /recipes": [{"bearerToken": []}],
        "PUT /recipes/{recipe}": [{"bearerToken": []}],
        "POST /evidence": [{}, {"bearerToken": []}],
        "POST /verify": [{}, {"bearerToken": []}],
    }


def test_the_page_shows_yaml_bodies_under_the_registered_name() -> None:
    text = api_page()
    assert (text.count("Body as `application/yaml`"), text.count("application/x-yaml")) == (4, 0)


def test_every_media_type_that_is_read_is_documented(document: dict[str, Any]) -> None:
    yaml = {"application/yaml", "application/x-yaml", "text/yaml"}
    found = {
        name: set(operation["requestBody"]["content"])
        for name, operation in operations(document).items()
        if "requestBody" in operation
    }
    assert set(found) == WITH_BODY
    assert found.pop("PUT /recipes") == {"application/json"}
    assert set(map(frozenset, found.values())) == {frozenset(yaml | {"application/json"})}


def test_every_reference_resolves(document: dict[str, Any]) -> None:
    known = document["components"]["schemas"]
    pending: list[Any] = [document]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if "$ref" in node:
                assert node["$ref"].rpartition("/")[2] in known, node
            pending += node.values()
        elif isinstance(node, list):
            pending += node


@pytest.mark.parametrize(
    ("operation", "model"),
    [
        ("submit", schemas.Submission),
        ("list_evidence", schemas.Page[schemas.RecordOut]),
        ("get_evidence", schemas.BundleOut),
        ("list_attempts", schemas.Page[schemas.AttemptOut]),
        ("get_attempt", schemas.AttemptOut),
        ("list_recipes", schemas.Page[schemas.RecipeLine]),
        ("get_recipe", schemas.RecipeOut),
        ("put_recipe", schemas.CataloguePut),
        ("put_recipes", schemas.CatalogueBulk),
        ("get_answer", schemas.AnswerOut),
        ("post_answer", schemas.AnswerOut),
        ("get_allowlist", schemas.AllowlistOut),
        ("list_allowlist_versions", schemas.Page[schemas.AllowlistVersionOut]),
        ("list_sources", schemas.Page[schemas.SourceOut]),
        ("get_source", schemas.SourceOut),
        ("health", schemas.Health),
        ("ready", schemas.Ready),
    ],
)
def test_an_example_is_what_its_schema_writes(operation: str, model: type[BaseModel]) -> None:
    """Every key of the schema is in the example, none that is not, and the values come out as they went in."""
    example = ROUTES[operation].answer
    written = model.model_validate(example, by_alias=True, by_name=False).model_dump(mode="json", by_alias=True)
    assert written == json.loads(json.dumps(example))


@pytest.mark.parametrize(
    ("operation", "model"),
    [("submit", SubmissionBody), ("put_recipe", CatalogueBody), ("put_recipes", BulkBody)],
)
def test_an_example_body_is_accepted(operation: str, model: type[BaseModel]) -> None:
    model.model_validate(ROUTES[operation].bodies["application/json"])


def test_the_reference_page_is_drawn_from_the_contract(client: httpx.Client, document: dict[str, Any]) -> None:
    served = client.get("/openapi.json")
    assert served.json() == document
    found = Page(client.get("/docs").text)
    for name in operations(document):
        assert name in found.shown
    for code in PROBLEMS:
        assert code in found.shown
    assert "/openapi.json" in found.links
