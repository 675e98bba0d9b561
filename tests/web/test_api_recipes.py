"""`/recipes` and `/answer`, over a socket."""

from dataclasses import replace
from typing import Any

import httpx
import pytest

from app.core.canonical import recipe_digests
from app.core.coordinate import Criteria
from app.core.identity import SignerIdentity
from tests.support.runs import (
    CHECK,
    CRITERIA,
    GHO,
    OLDER,
    RECIPE,
    TODAY,
    allowlist_text,
    make_run,
    person,
    version,
    workflow,
)
from tests.support.webapp import FakeContainer, client_of, make_container

TEXT = b"""apiVersion: aicr.run/v1
kind: RecipeResult
criteria:
  service: eks
  accelerator: h100
  os: ubuntu
  intent: training
  platform: kubeflow
metadata:
  version: v1.0.0
"""
TOKEN = {"Authorization": "Bearer push-me"}
PUSHED = {"commit": "0123abc", "ref": "main", "time": "2026-06-19T10:00:00Z"}
GKE = Criteria(service="gke", accelerator="h100", os="cos", intent="training")


def fill(container: FakeContainer) -> None:
    container.keep(make_run(person("dev-one")))
    container.keep(make_run(workflow()))
    container.keep(make_run(person("dev-two"), "failed", criteria=GKE, days=40))


def test_the_catalogue_lists_every_recipe_also_without_evidence(container: FakeContainer, client: httpx.Client) -> None:
    fill(container)
    container.store.put_catalogue(
        [version(recipe="b200-eks-ubuntu-training")], replace=False, project=container.allowlist.project
    )
    lines = {line["recipe"]: line for line in client.get("/recipes").json()["items"]}
    assert {name: line["state"] for name, line in lines.items()} == {
        "b200-eks-ubuntu-training": "UNTESTED",
        "h100-eks-ubuntu-training-kubeflow": "CONFIRMED",
        "h100-gke-cos-training": "FAILING",
    }
    confirmed = lines[RECIPE]
    assert (confirmed["passes"], confirmed["threshold"], confirmed["confirming"]) == (2, 2, 2)
    assert confirmed["classes"] == ["community", "first-party"]
    assert confirmed["links"]["page"] == f"/ui/recipes/{RECIPE}"
    assert lines["h100-gke-cos-training"]["staleness"] == ["UNKNOWN_CURRENT", "AGED"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        pytest.param("service=gke", ["h100-gke-cos-training"], id="service"),
        pytest.param("platform=any", ["h100-gke-cos-training"], id="no-platform"),
        pytest.param("state=CONFIRMED", [RECIPE], id="state"),
        pytest.param("staleness=AGED", ["h100-gke-cos-training"], id="staleness"),
        pytest.param("class=first-party", [RECIPE], id="class"),
        pytest.param("q=KubeFlow", [RECIPE], id="part-of-the-name"),
        pytest.param("accelerator=H100&service=EKS&platform=KubeFlow", [RECIPE], id="capitals"),
        pytest.param("service=&state=&q=", [RECIPE, "h100-gke-cos-training"], id="empty-is-absent"),
        pytest.param("accelerator=a100", [], id="nothing"),
    ],
)
def test_the_catalogue_is_filtered(
    container: FakeContainer, client: httpx.Client, query: str, found: list[str]
) -> None:
    fill(container)
    assert [line["recipe"] for line in client.get(f"/recipes?{query}").json()["items"]] == found


@pytest.mark.parametrize(
    "profile", ["gpuStack=Operator", "gpustack-operator", "GPUSTACK=OPERATOR", "GpuStack-Operator"]
)
def test_a_profile_is_found_by_selection_or_segment_in_any_case(
    container: FakeContainer, client: httpx.Client, profile: str
) -> None:
    container.keep(make_run(person("dev-one")))
    container.keep(make_run(person("dev-one"), selection="gpuStack=Operator", days=2))
    found = client.get("/recipes", params={"profile": profile}).json()["items"]
    assert [line["recipe"] for line in found] == [f"{RECIPE}-gpustack-operator"]


def test_the_catalogue_pages_by_name(container: FakeContainer, client: httpx.Client) -> None:
    fill(container)
    first = client.get("/recipes?limit=1").json()
    second = client.get("/recipes", params={"limit": 1, "cursor": first["next"]}).json()
    assert [first["items"][0]["recipe"], second["items"][0]["recipe"]] == [RECIPE, "h100-gke-cos-training"]
    assert second["next"] is None


def test_a_recipe_shows_its_rows_sources_and_what_is_missing(container: FakeContainer, client: httpx.Client) -> None:
    container.keep(make_run(person("dev-one"), {CHECK: "passed", ("conformance", "dra-support"): "skipped"}))
    container.keep(make_run(person("stranger"), "failed"))
    found = client.get(f"/recipes/{RECIPE}").json()
    rows = {(row["phase"], row["name"]): row for row in found["rows"]}
    assert rows[CHECK]["consensus"] == "SINGLE"
    assert (rows[CHECK]["passes"], rows[CHECK]["fails"], rows[CHECK]["reported"]) == (1, 0, 1)
    assert {(one["result"], one["weight"]) for one in rows[CHECK]["signers"]} == {
        ("pass", "counted"),
        ("fail", "reported"),
    }
    assert found["state"] == "PARTIAL"
    assert found["currentState"] is None
    assert found["phaseStates"] == {"deployment": "SINGLE", "conformance": "UNTESTED", "performance": "UNTESTED"}
    assert [source["identity"] for source in found["sources"]] == ["d…e@example.org", "s…r@example.org"]
    assert found["missing"]
    assert found["verified"]
    assert found["view"] == {
        "aicrVersion": "",
        "aicrCommit": "",
        "k8s": "",
        "asOf": None,
        "confirmBy": "signer",
        "confirmThreshold": 2,
    }
    assert "example.org" not in str(found).replace("…e@example.org", "").replace("…r@example.org", "")


def test_a_version_shows_its_strict_grid_and_an_unknown_one_is_empty(
    container: FakeContainer, client: httpx.Client
) -> None:
    container.keep(make_run(person("dev-one"), version="v1.0.0"))
    container.keep(make_run(person("dev-two"), version="v0.9.0"))

    def state(query: str) -> tuple[str, int]:
        found = client.get(f"/recipes/{RECIPE}{query}").json()
        return found["state"], len(found["rows"])

    assert state("") == ("CONFIRMED", 1)
    assert state("?aicrVersion=v1.0.0") == ("SINGLE", 1)
    assert state("?aicrVersion=v9.9.9") == ("UNTESTED", 0)
    versions = client.get(f"/recipes/{RECIPE}").json()["versions"]
    assert [(one["aicrVersion"], one["state"]) for one in versions] == [("v1.0.0", "SINGLE"), ("v0.9.0", "SINGLE")]


def test_kubernetes_dims_and_changes_no_consensus(container: FakeContainer, client: httpx.Client) -> None:
    container.keep(make_run(person("dev-one"), k8s="1.33"))
    container.keep(make_run(person("dev-two"), k8s="v1.35.5-eks-a3a0722"))
    found = client.get(f"/recipes/{RECIPE}?k8s=1.35").json()
    assert found["state"] == "CONFIRMED"
    dimmed = {one["k8sVersion"]: one["dimmed"] for one in found["rows"][0]["signers"]}
    assert dimmed == {"1.33": True, "v1.35.5-eks-a3a0722": False}


def test_as_of_tells_what_was_known_then(container: FakeContainer, client: httpx.Client) -> None:
    """A record received and a list activated later change nothing about the past."""
    early = container.clock.now
    container.keep(make_run(person("dev-one")))
    container.clock.now = early.replace(day=22)
    container.allowlist.put(allowlist_text(person("dev-one")))
    later = make_run(person("dev-two"))
    container.keep(replace(later, received_at=container.clock.now))
    now = client.get(f"/recipes/{RECIPE}").json()
    then = client.get(f"/recipes/{RECIPE}", params={"asOf": "2026-06-20T13:00:00Z"}).json()
    assert [len(one["sources"]) for one in (now, then)] == [2, 1]
    assert (now["sources"][0]["ageDays"], then["sources"][0]["ageDays"]) == (3, 1)
    assert then["view"]["asOf"] == "2026-06-20T13:00:00Z"
    unknown = client.get(f"/recipes/{RECIPE}", params={"asOf": "2020-01-01T00:00:00Z"})
    assert unknown.status_code == 404
    assert client.get(f"/recipes/{RECIPE}", params={"asOf": "2030-01-01T00:00:00Z"}).status_code == 400


def test_confirm_by_party_counts_one_account_once(container: FakeContainer, client: httpx.Client) -> None:
    account = "77+lab@users.noreply.github.com"
    me, mine = SignerIdentity(GHO, account), SignerIdentity("https://accounts.example.org", account)
    container.allowlist.put(allowlist_text(me, mine))
    container.keep(make_run(me))
    container.keep(make_run(mine, days=2))
    states = {by: client.get(f"/recipes/{RECIPE}?confirmBy={by}").json()["state"] for by in ("signer", "party")}
    assert states == {"signer": "CONFIRMED", "party": "SINGLE"}
    assert client.get(f"/recipes/{RECIPE}?confirmBy=luck").status_code == 400


def test_the_stale_digest_shows_beside_the_state(container: FakeContainer, client: httpx.Client) -> None:
    container.store.put_catalogue([version()], replace=False, project=container.allowlist.project)
    container.keep(make_run(person("dev-one"), recipe_digest=OLDER))
    container.keep(make_run(person("dev-two"), recipe_digest=TODAY))
    found = client.get(f"/recipes/{RECIPE}").json()
    assert (found["state"], found["currentState"], found["digests"]) == ("CONFIRMED", "SINGLE", 2)
    assert found["current"]["state"] == "SINGLE"
    assert found["catalogue"]["contentOnly"] == f"sha256:{TODAY}"
    reasons = [[one["reason"] for one in source["staleness"]] for source in found["sources"]]
    assert sorted(reasons) == [[], ["DRIFTED", "NEVER_PUBLISHED"]]


# --- the catalogue in ------------------------------------------------------------------------------


def test_a_push_needs_the_token(client: httpx.Client) -> None:
    path, headers = f"/recipes/{RECIPE}", {"Content-Type": "application/yaml"}
    missing = client.put(path, content=TEXT, headers=headers)
    wrong = client.put(path, content=TEXT, headers={**headers, "Authorization": "Bearer nope"})
    basic = client.put(path, content=TEXT, headers={**headers, "Authorization": "Basic push-me"})
    assert [answer.status_code for answer in (missing, wrong, basic)] == [401, 401, 401]
    assert missing.json()["code"] == "UNAUTHORIZED"
    assert missing.headers["www-authenticate"].startswith("Bearer")
    for token in ("push-me", "push-me-too"):
        answer = client.put(path, content=TEXT, headers={**headers, "Authorization": f"Bearer {token}"})
        assert answer.status_code == 200


def test_without_a_configured_token_the_route_is_closed() -> None:
    with client_of(make_container()) as client:
        answer = client.put("/recipes", json={"recipes": []}, headers=TOKEN)
    assert (answer.status_code, answer.json()["code"]) == (403, "FORBIDDEN")
    assert "AICR_EVIDENCE_CATALOGUE_TOKEN" in answer.json()["message"]


def test_both_digests_are_computed_from_the_text(container: FakeContainer, client: httpx.Client) -> None:
    headers = {**TOKEN, "Content-Type": "application/yaml"}
    params = {"commit": "0123abc", "ref": "refs/heads/main", "time": "2026-06-19T10:00:00Z"}
    answer = client.put(f"/recipes/{RECIPE}", content=TEXT, headers=headers, params=params)
    legacy, content_only = recipe_digests(TEXT)
    assert answer.json() == {
        "recipe": RECIPE,
        "changed": True,
        "legacy": f"sha256:{legacy}",
        "contentOnly": f"sha256:{content_only}",
        "links": {
            "self": f"/recipes/{RECIPE}",
            "page": f"/ui/recipes/{RECIPE}",
            "evidence": f"/evidence?recipe={RECIPE}",
        },
    }
    assert not client.put(f"/recipes/{RECIPE}", content=TEXT, headers=headers, params=params).json()["changed"]
    catalogue = client.get(f"/recipes/{RECIPE}").json()["catalogue"]
    assert (catalogue["commit"], catalogue["ref"], catalogue["at"]) == (
        "0123abc",
        "refs/heads/main",
        "2026-06-19T10:00:00Z",
    )


@pytest.mark.parametrize(
    ("query", "extra", "status"),
    [
        pytest.param(PUSHED, {}, 200, id="query-alone"),
        pytest.param({}, {"commit": "0123abc", "ref": "main", "time": "2026-06-19T12:00:00+02:00"}, 200, id="body"),
        pytest.param(PUSHED, {"commit": "0123abc", "time": "2026-06-19T12:00:00+02:00"}, 200, id="the-same-in-both"),
        pytest.param(PUSHED, {"commit": "4567def"}, 400, id="another-commit"),
        pytest.param(PUSHED, {"ref": "dev"}, 400, id="another-ref"),
        pytest.param(PUSHED, {"time": "2026-06-19T12:00:00Z"}, 400, id="another-time"),
    ],
)
def test_where_a_json_push_comes_from_stands_in_query_or_body(
    client: httpx.Client, query: dict[str, str], extra: dict[str, str], status: int
) -> None:
    body = {"digests": {"legacy": "aa" * 32, "contentOnly": "bb" * 32}, **extra}
    answer = client.put("/recipes/some-recipe", json=body, params=query, headers=TOKEN)
    assert answer.status_code == status, answer.text
    if status == 400:
        name = next(iter(extra))
        assert answer.json()["message"] == f"{name}: expected the same in the query and in the body, got two values"
        return
    catalogue = client.get("/recipes/some-recipe").json()["catalogue"]
    assert [catalogue[name] for name in ("commit", "ref", "at")] == ["0123abc", "main", "2026-06-19T10:00:00Z"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(
            {"time": "9999-12-31T23:59:59-23:59"}, "time: expected a time within the years 1 to 9999", id="late"
        ),
        pytest.param({"time": 1}, "time: expected a date and time with Z or an offset", id="number"),
        pytest.param({"digests": "x"}, "digests: expected an object", id="text-for-an-object"),
        pytest.param({"declared": {"deployment": "x"}}, "declared.deployment: expected a list", id="text-for-a-list"),
        pytest.param({"recipe": 1}, "recipe: expected text", id="number-for-a-text"),
        pytest.param({"commit": "x" * 65}, "commit: expected at most 64 characters", id="long"),
        pytest.param({"comit": "x"}, "comit: expected no such key", id="misspelt"),
    ],
)
def test_a_wrong_field_of_a_push_is_told_in_its_words(
    client: httpx.Client, body: dict[str, object], message: str
) -> None:
    answer = client.put("/recipes/some-recipe", json=body, headers=TOKEN)
    bulk = client.put("/recipes", json={"recipes": [body]}, headers=TOKEN)
    assert (answer.status_code, bulk.status_code) == (400, 400)
    assert answer.json()["message"].startswith(message)
    assert bulk.json()["message"].startswith(f"recipes.0.{message}")


def test_a_bulk_item_that_is_no_object_is_told_so(client: httpx.Client) -> None:
    answer = client.put("/recipes", json={"recipes": [1]}, headers=TOKEN)
    assert answer.json()["message"] == "recipes.0: expected an object"


def test_ready_digests_are_taken_as_they_are(client: httpx.Client) -> None:
    body = {
        "digests": {"legacy": "aa" * 32, "contentOnly": f"sha256:{'bb' * 32}"},
        "declared": {"deployment": ["operator-health"]},
        "floors": {"nccl-all-reduce-bw": ">= 100"},
    }
    answer = client.put("/recipes/some-recipe", json=body, headers=TOKEN)
    assert (answer.status_code, answer.json()["contentOnly"]) == (200, f"sha256:{'bb' * 32}")
    found = client.get("/recipes/some-recipe").json()
    assert found["catalogue"]["declared"] == [["deployment", "operator-health"]]
    assert [(row["name"], row["consensus"], row["declared"]) for row in found["rows"]] in (
        [],
        [("operator-health", "UNTESTED", True)],
    )


@pytest.mark.parametrize(
    ("target", "body", "kind", "status"),
    [
        pytest.param("/recipes/other-name", TEXT, "application/yaml", 400, id="another-recipe"),
        pytest.param(f"/recipes/{RECIPE}", b"kind: RecipeResult\n", "application/yaml", 400, id="no-criteria"),
        pytest.param(f"/recipes/{RECIPE}", b"{{{", "application/yaml", 400, id="no-yaml"),
        pytest.param(f"/recipes/{RECIPE}", b"{}", "application/json", 400, id="nothing"),
        pytest.param(
            f"/recipes/{RECIPE}",
            b'{"digests": {"legacy": "AA", "contentOnly": "bb"}}',
            "application/json",
            400,
            id="hex",
        ),
        pytest.param(f"/recipes/{RECIPE}", TEXT, "text/plain", 415, id="media-type"),
        pytest.param("/recipes", TEXT, "application/yaml", 415, id="bulk-media-type"),
        pytest.param("/recipes", b'{"recipes": []}', "application/json", 400, id="empty-bulk"),
        pytest.param("/recipes?replace=true", b'{"recipes": []}', "application/json", 400, id="empty-replace"),
        pytest.param(f"/recipes/{RECIPE}", b"x: y\n" * 300_000, "application/yaml", 413, id="oversize"),
    ],
)
def test_a_bad_push_is_refused(client: httpx.Client, target: str, body: bytes, kind: str, status: int) -> None:
    answer = client.put(target, content=body, headers={**TOKEN, "Content-Type": kind})
    assert answer.status_code == status, answer.text
    assert client.get("/recipes").json()["items"] == []


def test_a_bulk_push_is_all_or_nothing_and_replace_retires(container: FakeContainer, client: httpx.Client) -> None:
    ready = {"digests": {"legacy": "aa" * 32, "contentOnly": "bb" * 32}}
    body: dict[str, Any] = {"commit": "0123abc", "recipes": [{"recipe": TEXT.decode()}, {"name": "gone-soon", **ready}]}
    assert client.put("/recipes", json=body, headers=TOKEN).json() == {
        "received": 2,
        "changed": ["gone-soon", RECIPE],
        "retired": [],
    }
    bad = {"recipes": [{"name": "fresh", **ready}, {"name": "wrong", "recipe": TEXT.decode()}]}
    assert client.put("/recipes", json=bad, headers=TOKEN).status_code == 400
    assert client.get("/recipes/fresh").status_code == 404
    body["recipes"] = body["recipes"][:1]
    assert client.put("/recipes?replace=true", json=body, headers=TOKEN).json() == {
        "received": 1,
        "changed": [],
        "retired": ["gone-soon"],
    }
    assert client.get("/recipes/gone-soon").json()["currentState"] is None
    assert not next(line for line in client.get("/recipes").json()["items"] if line["recipe"] == "gone-soon")[
        "published"
    ]
    twice = {"recipes": [{"name": "same", **ready}, {"name": "same", **ready}]}
    assert client.put("/recipes", json=twice, headers=TOKEN).status_code == 400


# --- answer ----------------------------------------------------------------------------------------


def test_an_answer_gives_the_verdict_and_the_command(container: FakeContainer, client: httpx.Client) -> None:
    fill(container)
    params = {"service": "eks", "gpu": "h100", "os": "ubuntu", "intent": "training", "platform": "kubeflow"}
    found = client.get("/answer", params=params).json()
    assert (found["state"], found["matches"][0]["recipe"]) == ("CONFIRMED", RECIPE)
    assert (found["matches"][0]["passes"], found["matches"][0]["threshold"]) == (2, 2)
    assert found["matches"][0]["command"] == (
        "aicr recipe --service eks --accelerator h100 --os ubuntu --intent training --platform kubeflow"
    )


def test_an_answer_without_a_fit_names_what_differs(container: FakeContainer, client: httpx.Client) -> None:
    fill(container)
    found = client.get("/answer", params={"service": "gke", "accelerator": "h100", "os": "ubuntu"}).json()
    assert found["state"] is None
    nearest = found["nearest"][0]
    assert (nearest["backing"], nearest["staleness"]) == ("evidence", ["UNKNOWN_CURRENT", "AGED"])
    assert found["nearest"][0]["differs"] == [{"dimension": "os", "asked": "ubuntu", "recipe": "cos"}]


def test_strangers_recipes_stay_a_number_in_an_answer(container: FakeContainer, client: httpx.Client) -> None:
    fill(container)
    for index in range(30):
        criteria = replace(CRITERIA, platform=f"junk{index}")
        container.keep(make_run(person("somebody"), criteria=criteria, digest=f"{index:064x}"))
    found = client.get("/answer", params={"service": "eks", "accelerator": "h100"}).json()
    assert [one["recipe"] for one in found["matches"]] == [RECIPE]
    assert (found["state"], found["more"], found["unbacked"]) == ("CONFIRMED", 0, 30)


def test_a_retired_recipe_answers_no_question(container: FakeContainer, client: httpx.Client) -> None:
    fill(container)
    ask, project = {"service": "eks", "accelerator": "h100"}, container.allowlist.project
    container.store.put_catalogue([version(criteria=CRITERIA)], replace=False, project=project)
    before = client.get("/answer", params=ask).json()
    container.store.put_catalogue(
        [version(recipe="h100-gke-cos-training", criteria=GKE)], replace=True, project=project
    )
    after = client.get("/answer", params=ask).json()
    assert (before["state"], before["retired"]) == ("CONFIRMED", [])
    assert (after["state"], after["matches"], after["retired"]) == (None, [], [RECIPE])
    lines = {line["recipe"]: line["retired"] for line in client.get("/recipes").json()["items"]}
    assert lines[RECIPE] is True


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        pytest.param(
            b"fingerprint: {service: {value: eks}, accelerator: {value: h100}, os: {value: ubuntu}}",
            "application/yaml",
            id="fingerprint",
        ),
        pytest.param(b'{"criteria": {"service": "eks", "accelerator": "h100"}}', "application/json", id="criteria"),
    ],
)
def test_a_posted_document_is_answered_and_named_values_win(
    container: FakeContainer, client: httpx.Client, body: bytes, kind: str
) -> None:
    fill(container)
    headers = {"Content-Type": kind}
    found = client.post("/answer?intent=training&platform=kubeflow", content=body, headers=headers)
    assert (found.status_code, found.json()["matches"][0]["recipe"]) == (200, RECIPE)
    assert found.headers["cache-control"] == "no-store"
    other = client.post("/answer?service=gke", content=body, headers=headers).json()
    assert other["asked"]["criteria"]["service"] == "gke"


@pytest.mark.parametrize(
    ("target", "body"),
    [
        pytest.param("/answer", {"criteria": {"service": "any"}}, id="in-the-body"),
        pytest.param("/answer?service=any", {"criteria": {}}, id="beside-criteria"),
        pytest.param("/answer?service=any", {"fingerprint": {}}, id="beside-a-fingerprint"),
    ],
)
def test_any_asks_for_every_recipe_however_it_is_said(
    container: FakeContainer, client: httpx.Client, target: str, body: object
) -> None:
    fill(container)
    found = client.post(target, json=body)
    assert found.status_code == 200
    assert found.json()["matches"] == client.get("/answer?service=any").json()["matches"] != []


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        pytest.param(b"[]", "application/yaml", 400, id="list"),
        pytest.param(b"hello: world", "application/yaml", 400, id="neither"),
        pytest.param(b"", "application/yaml", 400, id="empty"),
        pytest.param(b'{"criteria": []}', "application/json", 400, id="criteria-list"),
        pytest.param(b'{"criteria": {"service": ["eks"]}}', "application/json", 400, id="dimension-list"),
        pytest.param(b'{"criteria": {"service": {"value": "eks"}}}', "application/json", 400, id="dimension-object"),
        pytest.param(
            b'{"criteria": {"service": "eks", "os": ["ubuntu"]}}', "application/json", 400, id="one-dimension-list"
        ),
        pytest.param(b'{"criteria": {}}', "application/json", 400, id="no-criteria"),
        pytest.param(b'{"criteria": {"service": "", "os": null}}', "application/json", 400, id="empty-criteria"),
        pytest.param(b"fingerprint: {service: {value: any}}", "application/yaml", 400, id="fingerprint-of-any"),
        pytest.param(b'{"criteria": {"servce": null}}', "application/json", 400, id="unknown-dimension"),
        pytest.param(b'{"measurements": [1]}', "application/json", 400, id="measurements-of-numbers"),
        pytest.param(b'{"measurements": []}', "application/json", 400, id="no-measurements"),
        pytest.param(b'{"fingerprint": {}}', "application/json", 400, id="empty-fingerprint"),
        pytest.param(b"fingerprint: {service: {value: [eks]}}", "application/yaml", 400, id="fingerprint-of-lists"),
        pytest.param(b"x", "text/csv", 415, id="media-type"),
    ],
)
def test_a_document_that_says_nothing_is_400(
    container: FakeContainer, client: httpx.Client, body: bytes, kind: str, status: int
) -> None:
    fill(container)
    assert client.post("/answer", content=body, headers={"Content-Type": kind}).status_code == status
