"""`POST /evidence`, `POST /verify` and what is read of records, over a socket."""

import asyncio
import base64
import json
import threading

import httpx
import pytest

from app.core.bundle import Rejected
from app.core.errors import (
    Category,
    ConflictError,
    FetchError,
    JudgeCrashed,
    JudgeUnavailable,
    RegistryNotTrusted,
    ServiceError,
    StoreError,
)
from app.core.identity import SignerIdentity
from app.core.refs import Digest
from app.core.report import (
    CauseClass,
    Exit,
    FailureCause,
    InputKind,
    Report,
    ReportSigner,
    Step,
    StepName,
    StepStatus,
)
from app.ports import Access
from app.services.ingest_types import BODY_TOO_LARGE, IngestResult, Judged, Refused
from app.services.masking import Masking, Replacements
from app.web.app import create_app
from tests.support.runs import CHECK, GHO, PATTERN, RECIPE, allowlist_text, make_run, person, workflow
from tests.support.webapp import REGISTRY, FakeContainer, Switchboard, make_container

ADDRESS = "dev-one@example.org"
REFERENCE = f"{REGISTRY}@sha256:{'ab' * 32}"
POINTER = f"""attestations:
  - attestedAt: 2026-05-08T10:23:11Z
    bundle:
      digest: sha256:{"ab" * 32}
      oci: {REGISTRY}:some-tag
      predicateType: https://aicr.run/recipe-evidence/v3
    signer:
      identity: {ADDRESS}
      issuer: {GHO}
      rekorLogIndex: 0
recipe: {RECIPE}
schemaVersion: 1.0.0
"""


def refused(cause: CauseClass = CauseClass.SIGNATURE, code: str = "S5_BASE64") -> Refused:
    why = FailureCause(cause, f"signed by {ADDRESS}", http_status=None, hint="sign again")
    report = Report(
        InputKind.OCI,
        (Step(StepName.SIGNATURE, StepStatus.FAILED, f"signed by {ADDRESS}"),),
        Exit.INVALID,
        signer=ReportSigner(ADDRESS, GHO, 7),
        failure_cause=why,
    )
    return Refused(StepName.SIGNATURE, code, why, report, Digest("ab" * 32), attempt_id=41)


def test_a_new_record_is_201_and_a_repeat_is_200_with_the_same_bytes(
    container: FakeContainer, client: httpx.Client
) -> None:
    run = make_run(person("dev-one"))
    reference = container.script(run)
    first = client.post("/evidence", json={"bundle": reference})
    container.script(run, created=False)
    container.clock.now = container.clock.now.replace(hour=20)
    second = client.post("/evidence", json={"bundle": reference})
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.content == second.content
    base = f"/evidence/{run.digest}/{run.source}"
    assert first.json() == {
        "digest": str(run.digest),
        "recipe": RECIPE,
        "source": "b0e01b470866f200af3b5cb4bcc303aa",
        "class": "community",
        "allowlisted": True,
        "exit": 0,
        "state": {"before": None, "after": "SINGLE"},
        "remarks": [
            {
                "code": "personal-address",
                "message": "the signature put an e-mail address into a public log",
                "data": {},
            }
        ],
        "links": {
            "self": f"/evidence/{run.digest}",
            "report": f"{base}/report",
            "predicate": f"{base}/predicate",
            "bundle": f"{base}/bundle",
            "archive": f"/evidence/{run.digest}/archive",
            "recipe": f"/recipes/{RECIPE}",
            "page": f"/ui/recipes/{RECIPE}",
        },
    }
    assert first.headers["location"] == f"/evidence/{run.digest}"


def test_recorded_failures_are_evidence(container: FakeContainer, client: httpx.Client) -> None:
    reference = container.script(make_run(person("dev-one"), "failed"))
    answer = client.post("/evidence", json={"bundle": reference})
    assert (answer.status_code, answer.json()["exit"], answer.json()["state"]["after"]) == (201, 1, "FAILING")


def test_a_strangers_record_is_stored_and_reported(container: FakeContainer, client: httpx.Client) -> None:
    reference = container.script(make_run(person("stranger")))
    answer = client.post("/evidence", json={"bundle": reference}).json()
    assert (answer["class"], answer["allowlisted"], answer["state"]["after"]) == ("community", False, "UNTESTED")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        pytest.param(json.dumps({"pointer": POINTER}), "application/json", id="yaml-text-in-json"),
        pytest.param(POINTER, "application/yaml", id="pointer-file"),
        pytest.param(POINTER, "application/x-yaml; charset=utf-8", id="pointer-file-x-yaml"),
    ],
)
def test_a_pointer_keeps_its_exact_text(container: FakeContainer, client: httpx.Client, body: str, kind: str) -> None:
    container.ingest.results[REFERENCE] = refused()
    client.post("/evidence", content=body, headers={"Content-Type": kind})
    asked = container.ingest.asked[0]
    assert (str(asked.reference), asked.pointer, asked.dry_run) == (REFERENCE, POINTER.encode(), False)


@pytest.mark.parametrize("path", ["/evidence", "/verify"])
def test_logins_are_used_for_a_caller_with_a_token_only(
    container: FakeContainer, client: httpx.Client, path: str
) -> None:
    container.ingest.results[REFERENCE] = refused()
    client.post(path, json={"bundle": REFERENCE})
    client.post(path, json={"bundle": REFERENCE}, headers={"Authorization": "Bearer push-me-too"})
    assert [asked.access for asked in container.ingest.asked] == [Access.ANONYMOUS, Access.CREDENTIALED]
    for wrong in ("Bearer other", "bearer other", "Bearer"):
        answer = client.post(path, json={"bundle": REFERENCE}, headers={"Authorization": wrong})
        assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHORIZED")
        assert answer.json()["details"] == {"hint": "leave Authorization out to submit anonymously"}
    assert len(container.ingest.asked) == 2


@pytest.mark.parametrize("path", ["/evidence", "/verify"])
@pytest.mark.parametrize("header", ["Basic cHVzaC1tZQ==", "push-me", "", "Digest Bearer"])
def test_an_authorization_of_another_scheme_is_somebody_elses(
    container: FakeContainer, client: httpx.Client, path: str, header: str
) -> None:
    container.ingest.results[REFERENCE] = refused()
    client.post(path, json={"bundle": REFERENCE}, headers={"Authorization": header})
    assert [asked.access for asked in container.ingest.asked] == [Access.ANONYMOUS]


@pytest.mark.parametrize("path", ["/evidence", "/verify"])
@pytest.mark.parametrize("header", ["Bearer somebodys", "Bearer", "Basic cHVzaC1tZQ=="])
def test_where_no_token_is_set_everybody_is_anonymous(
    switchboard: tuple[Switchboard, str], path: str, header: str
) -> None:
    board, base = switchboard
    container = make_container()
    container.ingest.results[REFERENCE] = refused()
    board.app = create_app(container)
    with httpx.Client(base_url=base, trust_env=False) as client:
        client.post(path, json={"bundle": REFERENCE}, headers={"Authorization": header})
    assert [asked.access for asked in container.ingest.asked] == [Access.ANONYMOUS]


def test_an_administrators_token_has_a_bundle_pulled_with_the_logins_too(switchboard: tuple[Switchboard, str]) -> None:
    board, base = switchboard
    container = make_container(admin_token="rule")
    container.ingest.results[REFERENCE] = refused()
    board.app = create_app(container)
    with httpx.Client(base_url=base, trust_env=False) as client:
        client.post("/evidence", json={"bundle": REFERENCE}, headers={"Authorization": "Bearer rule"})
    assert [asked.access for asked in container.ingest.asked] == [Access.CREDENTIALED]


def test_a_pointer_object_is_read_as_its_file_would_be(container: FakeContainer, client: httpx.Client) -> None:
    container.ingest.results[REFERENCE] = refused()
    pointer = {
        "schemaVersion": "1.0.0",
        "recipe": RECIPE,
        "attestations": [
            {
                "bundle": {
                    "oci": REGISTRY,
                    "digest": f"sha256:{'ab' * 32}",
                    "predicateType": "https://aicr.run/recipe-evidence/v3",
                },
                "signer": {"identity": "dév@example.org", "issuer": GHO, "rekorLogIndex": 0},
            }
        ],
    }
    client.post("/evidence", json={"pointer": pointer})
    assert json.loads(container.ingest.asked[0].pointer or b"") == pointer
    assert str(container.ingest.asked[0].reference) == REFERENCE


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        pytest.param(b"{", "application/json", 400, id="no-json"),
        pytest.param(b"[]", "application/json", 400, id="no-object"),
        pytest.param(b"{}", "application/json", 400, id="neither-key"),
        pytest.param(b'{"bundle": "a", "pointer": "b"}', "application/json", 400, id="both-keys"),
        pytest.param(b'{"bundle": "a", "bundle": "b"}', "application/json", 400, id="twice"),
        pytest.param(b'{"bundel": "a"}', "application/json", 400, id="misspelt"),
        pytest.param(b'{"bundle": 7}', "application/json", 400, id="number"),
        pytest.param(
            json.dumps({"bundle": "registry.example.org/evidence:latest"}).encode(),
            "application/json",
            400,
            id="tag-without-digest",
        ),
        pytest.param(
            json.dumps({"bundle": f"{REGISTRY}@sha512:{'ab' * 32}"}).encode(),
            "application/json",
            400,
            id="sha512",
        ),
        pytest.param(b"[" * 100_000, "application/json", 400, id="deep"),
        pytest.param(b"recipe: x\n", "application/yaml", 400, id="pointer-without-schema"),
        pytest.param(b"a: &a [*a]\n", "application/yaml", 400, id="yaml-alias"),
        pytest.param(b"\xff\xfe\x00", "application/yaml", 400, id="not-utf8"),
        pytest.param(b"x", "text/plain", 415, id="plain-text"),
        pytest.param(b"x", "", 415, id="no-type"),
        pytest.param(b"x" * ((1 << 20) + 1), "application/yaml", 413, id="over-the-route-limit"),
        pytest.param(b"x" * ((8 << 20) + 1), "application/yaml", 413, id="over-every-limit"),
    ],
)
def test_a_bad_body_is_refused_before_anything_is_asked(
    container: FakeContainer, client: httpx.Client, body: bytes, kind: str, status: int
) -> None:
    code = {400: "INVALID_REQUEST", 413: "PAYLOAD_TOO_LARGE", 415: "UNSUPPORTED_MEDIA_TYPE"}[status]
    for path in ("/evidence", "/verify", "/evidence?dryRun=true"):
        answer = client.post(path, content=body, headers={"Content-Type": kind} if kind else {})
        envelope = answer.json()
        assert (answer.status_code, envelope["code"], envelope["retryable"]) == (status, code, False)
        assert status != 413 or envelope["message"] == "expected a body of at most 1048576 bytes"
    assert container.ingest.asked == []


@pytest.mark.parametrize("pointer", [1, [1], True])
def test_a_pointer_of_another_type_is_told_what_it_can_be(client: httpx.Client, pointer: object) -> None:
    answer = client.post("/evidence", json={"pointer": pointer})
    assert (answer.status_code, answer.json()["details"]["fields"]) == (
        400,
        [{"field": "pointer", "message": "expected an object, or the text of a YAML file"}],
    )


def test_a_compressed_body_is_not_unpacked(client: httpx.Client) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    assert client.post("/evidence", content=b"\x1f\x8b", headers=headers).status_code == 415


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(RegistryNotTrusted("outside"), (403, "REGISTRY_NOT_TRUSTED", None), id="untrusted"),
        pytest.param(FetchError("busy", http_status=503), (503, "SERVICE_UNAVAILABLE", "5"), id="registry-503"),
        pytest.param(
            FetchError("slow down", http_status=429, retry_after_seconds=17),
            (503, "SERVICE_UNAVAILABLE", "17"),
            id="registry-429",
        ),
        pytest.param(
            FetchError("too slow", category=Category.TIMEOUT), (503, "SERVICE_UNAVAILABLE", "5"), id="pull-timeout"
        ),
        pytest.param(
            FetchError("blob over its limit", category=Category.INVALID_REQUEST, code=BODY_TOO_LARGE),
            (413, "PAYLOAD_TOO_LARGE", None),
            id="oversize",
        ),
        pytest.param(FetchError("no", http_status=404), (422, "EVIDENCE_REFUSED", None), id="registry-404"),
        pytest.param(JudgeUnavailable("internal: pid 7"), (503, "SERVICE_UNAVAILABLE", "5"), id="no-worker"),
        pytest.param(JudgeCrashed("twice"), (422, "JUDGE_CRASHED", None), id="crashed"),
        pytest.param(StoreError("internal: disk full"), (503, "SERVICE_UNAVAILABLE", "5"), id="store"),
        pytest.param(ConflictError("reused", code="LOG_ENTRY_REUSED"), (409, "CONFLICT", None), id="conflict"),
        pytest.param(ServiceError("internal: secret"), (500, "INTERNAL", None), id="unknown"),
        pytest.param(RuntimeError("internal: secret"), (500, "INTERNAL", None), id="defect"),
    ],
)
def test_what_was_raised_becomes_its_status(
    container: FakeContainer, client: httpx.Client, error: Exception, expected: tuple[int, str, str | None]
) -> None:
    status, code, retry_after = expected
    container.ingest.results[REFERENCE] = error
    answer = client.post("/evidence", json={"bundle": REFERENCE})
    envelope = answer.json()
    assert (answer.status_code, envelope["code"]) == (status, code)
    assert answer.headers.get("retry-after") == retry_after
    assert envelope["retryable"] is (status in {500, 503})
    assert envelope["requestId"] == answer.headers["x-request-id"]
    assert envelope["timestamp"] == "2026-06-20T12:00:00Z"
    assert "internal" not in answer.text
    assert "Traceback" not in answer.text
    assert answer.headers["cache-control"] == "no-store"


def test_a_refusal_tells_step_code_cause_and_report_and_masks_addresses(
    container: FakeContainer, client: httpx.Client
) -> None:
    container.ingest.results[REFERENCE] = refused()
    answer = client.post("/evidence", json={"bundle": REFERENCE})
    details = answer.json()["details"]
    assert (answer.status_code, answer.json()["code"]) == (422, "EVIDENCE_REFUSED")
    assert (details["step"], details["code"]) == ("signature-verify", "S5_BASE64")
    assert details["cause"] == {"class": "signature", "detail": "signed by d…e@example.org", "hint": "sign again"}
    assert details["report"]["signer"]["identity"] == "d…e@example.org"
    assert (details["report"]["exit"], details["attempt"]) == (2, "/attempts/41")
    assert ADDRESS not in answer.text


def test_a_dry_run_is_200_and_says_what_would_change(container: FakeContainer, client: httpx.Client) -> None:
    run = make_run(person("dev-one"))
    report = Report(InputKind.OCI, (), Exit.VALID)
    container.ingest.results[REFERENCE] = Judged(run, "community", allowlisted=True, report=report)
    answer = client.post("/evidence?dryRun=true", json={"bundle": REFERENCE})
    assert (answer.status_code, answer.json()["state"]) == (200, {"before": None, "after": None})
    assert container.ingest.asked[0].dry_run
    assert "location" not in answer.headers


@pytest.mark.parametrize(
    "result",
    [
        pytest.param(refused(), id="refused"),
        pytest.param(
            Judged(
                make_run(person("dev-one")),
                "community",
                allowlisted=True,
                report=Report(InputKind.OCI, (), Exit.VALID, signer=ReportSigner(ADDRESS, GHO)),
            ),
            id="accepted",
        ),
    ],
)
def test_verify_answers_200_with_the_report_whatever_the_verdict(
    container: FakeContainer, client: httpx.Client, result: IngestResult
) -> None:
    container.ingest.results[REFERENCE] = result
    answer = client.post("/verify", json={"bundle": REFERENCE})
    text = client.post("/verify?format=markdown", json={"bundle": REFERENCE})
    assert (answer.status_code, text.status_code) == (200, 200)
    assert answer.json()["signer"]["identity"] == "d…e@example.org"
    assert text.headers["content-type"] == "text/markdown; charset=utf-8"
    assert text.text.startswith("## Evidence verification")
    assert ADDRESS not in answer.text + text.text
    assert container.ingest.asked[0].verify_only


@pytest.mark.parametrize("path", ["/evidence", "/verify", "/verify?format=markdown"])
def test_a_report_is_masked_and_written_beside_the_event_loop(
    container: FakeContainer, client: httpx.Client, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """A predicate of megabytes costs seconds, in which a probe on the loop would wait."""
    on_loop: list[bool] = []
    masked = Masking.replacements

    def watched(self: Masking, issuer: str, identity: str) -> Replacements:
        on_loop.append(asyncio._get_running_loop() is not None)
        return masked(self, issuer, identity)

    monkeypatch.setattr(Masking, "replacements", watched)
    container.ingest.results[REFERENCE] = refused()

    assert client.post(path, json={"bundle": REFERENCE}).status_code in {200, 422}
    assert set(on_loop) == {False}


def test_fifty_waiting_ingests_block_no_read(container: FakeContainer, client: httpx.Client) -> None:
    """50 posts that hang in the registry leave reads answering."""
    container.ingest.release = threading.Event()
    container.ingest.results[REFERENCE] = refused()
    answers: list[int] = []

    def post() -> None:
        with httpx.Client(base_url=client.base_url, trust_env=False, timeout=30) as own:
            answers.append(own.post("/evidence", json={"bundle": REFERENCE}).status_code)

    threads = [threading.Thread(target=post) for _ in range(50)]
    for thread in threads:
        thread.start()
    while len(container.ingest.asked) < 50:
        threading.Event().wait(0.01)
    assert client.get("/recipes", timeout=5).status_code == 200
    container.ingest.release.set()
    for thread in threads:
        thread.join(20)
    assert answers == [422] * 50


# --- reads -----------------------------------------------------------------------------------------


def test_a_digest_lists_every_sources_record(container: FakeContainer, client: httpx.Client) -> None:
    digest = "cd" * 32
    container.keep(make_run(person("dev-one"), digest=digest))
    run = make_run(person("stranger"), digest=digest)
    container.keep(run)
    found = client.get(f"/evidence/sha256:{digest}").json()
    assert [(r["signer"]["identity"], r["allowlisted"]) for r in found["records"]] == [
        ("d…e@example.org", True),
        ("s…r@example.org", False),
    ]
    assert [place["reference"] for place in found["locations"]] == [f"{REGISTRY}@sha256:{digest}"]
    first = found["records"][0]
    assert first["results"][0]["name"] == CHECK[1]
    assert first["staleness"]["atIngest"] == {
        "before": None,
        "after": "SINGLE",
        "staleness": ["UNKNOWN_CURRENT"],
        "commit": None,
    }
    assert [reason["reason"] for reason in first["staleness"]["now"]] == ["UNKNOWN_CURRENT"]
    assert found["notProven"]


def test_an_older_run_of_a_source_is_superseded(container: FakeContainer, client: httpx.Client) -> None:
    old = make_run(person("dev-one"), days=5)
    container.keep(old)
    container.keep(make_run(person("dev-one"), days=2))
    found = client.get("/evidence").json()["items"]
    reasons = {item["digest"]: [one["reason"] for one in item["staleness"]["now"]] for item in found}
    assert reasons[str(old.digest)] == ["UNKNOWN_CURRENT", "SUPERSEDED"]
    only = client.get("/evidence?staleness=SUPERSEDED").json()
    assert [item["digest"] for item in only["items"]] == [str(old.digest)]
    assert client.get("/evidence?staleness=current").json()["items"] == []


def test_lists_page_by_an_opaque_cursor(container: FakeContainer, client: httpx.Client) -> None:
    runs = [make_run(person("dev-one"), days=day) for day in (5, 4, 3, 2, 1)]
    for run in runs:
        container.keep(run)
    seen: list[str] = []
    cursor: str | None = None
    while True:
        params = {"limit": "2", **({"cursor": cursor} if cursor else {})}
        page = client.get("/evidence", params=params).json()
        seen += [item["digest"] for item in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
        assert not cursor.isdecimal()
    assert seen == [str(run.digest) for run in reversed(runs)]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        pytest.param({"outcome": "failed"}, ["dev-two"], id="outcome"),
        pytest.param({"source": person("dev-one").slug}, ["dev-one"], id="source"),
        pytest.param({"source": person("dev-one").canonical_id}, ["dev-one"], id="canonical-id"),
        pytest.param({"k8s": "1.34"}, ["dev-two"], id="k8s"),
        pytest.param({"aicrVersion": "v1.0.0"}, ["dev-two", "dev-one"], id="version"),
        pytest.param({"recipe": "other"}, [], id="recipe"),
        pytest.param({"class": "partner"}, [], id="class"),
        pytest.param({"since": "2026-06-21T00:00:00Z"}, [], id="since"),
    ],
)
def test_records_are_filtered(
    container: FakeContainer, client: httpx.Client, query: dict[str, str], found: list[str]
) -> None:
    container.keep(make_run(person("dev-one")))
    container.keep(make_run(person("dev-two"), "failed", k8s="1.34"))
    names = {person(name).slug: name for name in ("dev-one", "dev-two")}
    assert [names[item["source"]] for item in client.get("/evidence", params=query).json()["items"]] == found


@pytest.mark.parametrize(
    ("party", "found"),
    [
        pytest.param("d…e@example.org", ["dime@example.org", "dune@example.org"], id="everybody-who-is-shown-so"),
        pytest.param("dune@example.org", [], id="the-address-itself"),
        pytest.param("d…n@example.org", [], id="hidden-by-a-label"),
        pytest.param("lab-one", ["dawn@example.org"], id="label"),
        pytest.param("dawn@example.org", [], id="the-address-behind-a-label"),
        pytest.param("…", [], id="anybody"),
        pytest.param("d%e@example.org", [], id="pattern"),
        pytest.param("github:nvidia", [workflow().identity], id="account"),
    ],
)
def test_a_party_is_asked_for_as_it_is_shown(
    container: FakeContainer, client: httpx.Client, party: str, found: list[str]
) -> None:
    """A stranger can not find out an address by trying some."""
    people = [SignerIdentity(GHO, f"{name}@example.org") for name in ("dune", "dime", "dawn")]
    container.allowlist.put(allowlist_text(people[2], patterns=[PATTERN], labels={people[2].slug: "lab-one"}))
    names = {signer.slug: signer.identity for signer in (*people, workflow())}
    for day, signer in enumerate((*people, workflow())):
        container.keep(make_run(signer, days=day + 1))
    answer = client.get("/evidence", params={"party": party, "limit": 1}).json()
    items, following = answer["items"], answer["next"]
    while following is not None:
        answer = client.get("/evidence", params={"party": party, "limit": 1, "cursor": following}).json()
        items, following = items + answer["items"], answer["next"]
    assert [names[item["source"]] for item in items] == found
    assert {item["signer"]["party"] for item in items} <= {party}


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("limit=0", id="limit-0"),
        pytest.param("limit=501", id="limit-501"),
        pytest.param("cursor=nonsense", id="cursor"),
        pytest.param("cursor=" + base64.urlsafe_b64encode(b'["recipes", 3]').decode(), id="cursor-of-another-list"),
        pytest.param("cursor=" + base64.urlsafe_b64encode(b'["evidence", -3]').decode(), id="negative-cursor"),
        pytest.param("digest=sha256:xyz", id="digest"),
        pytest.param("outcome=maybe", id="outcome"),
        pytest.param("since=yesterday", id="since"),
        pytest.param("since=2026-06-20T00:00:00", id="since-without-zone"),
        pytest.param("staleness=OLD", id="staleness"),
    ],
)
def test_a_bad_filter_is_400_in_the_envelope(client: httpx.Client, query: str) -> None:
    answer = client.get(f"/evidence?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST")


def test_signed_bytes_are_exact_and_immutable(container: FakeContainer, client: httpx.Client) -> None:
    payload = b'{"signed": "dev-one@example.org"}  \n'
    bundle = json.dumps({"dsseEnvelope": {"payload": base64.b64encode(payload).decode()}}, indent=7).encode()
    run = make_run(person("dev-one"))
    container.keep(run, bundle=bundle)
    base = f"/evidence/{run.digest}/{run.source}"
    predicate, signed = client.get(f"{base}/predicate"), client.get(f"{base}/bundle")
    assert (predicate.content, signed.content) == (payload, bundle)
    for answer in (predicate, signed):
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in answer.headers["content-security-policy"]
    assert client.get(f"/evidence/{run.digest}/{run.source_id}/bundle").content == bundle


def test_the_report_is_judged_anew_and_masked(container: FakeContainer, client: httpx.Client) -> None:
    run = make_run(person("dev-one"))
    container.keep(run)
    verdict = refused()
    container.judge.verdict = Rejected(verdict.step, verdict.code, verdict.cause, verdict.report)
    base = f"/evidence/{run.digest}/{run.source}/report"
    answer, text = client.get(base), client.get(f"{base}?format=markdown")
    assert answer.json()["signer"]["identity"] == "d…e@example.org"
    assert ADDRESS not in answer.text + text.text
    assert client.get(base, headers={"If-None-Match": answer.headers["etag"]}).status_code == 304
    assert text.headers["etag"] != answer.headers["etag"]


def test_a_labelled_signer_is_shown_by_the_label_alone(container: FakeContainer, client: httpx.Client) -> None:
    me = person("dev-one")
    container.allowlist.put(allowlist_text(me, labels={me.slug: "lab-one"}))
    run = make_run(me)
    container.keep(run)
    for path in (f"/evidence/{run.digest}", f"/recipes/{RECIPE}", "/sources", "/evidence", f"/ui/recipes/{RECIPE}"):
        text = client.get(path).text
        assert "lab-one" in text, path
        assert "example.org" not in text.replace("log.example.org", "").replace(REGISTRY, ""), path


@pytest.mark.parametrize(
    "path",
    [
        f"/evidence/sha256:{'00' * 32}",
        f"/evidence/sha256:{'00' * 32}/archive",
        f"/evidence/sha256:{'00' * 32}/files/recipe.yaml",
        f"/evidence/sha256:{'00' * 32}/{'0' * 32}/report",
        "/attempts/7",
        "/sources/0123",
        "/recipes/unknown",
    ],
)
def test_what_is_not_known_is_404(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")
