"""Tokens of the simulated issuer: what they claim, who verifies them, and what the CA does not take."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest

from app.sandbox.identities import DEV_TWO, OCTOCAT, PARTNER, SAMPLE_SIGNERS, STRANGER, UAT_AWS, caller_of
from app.sandbox.sigstore.oidc import TokenRefused, UnsafeSimulatedIssuer, claims_of, subject_of

NOW = datetime(2026, 5, 8, 10, 24, 0, tzinfo=UTC)
ISSUER = UnsafeSimulatedIssuer(SAMPLE_SIGNERS)
TIMES = {"iat": 1778235840, "nbf": 1778235840, "exp": 1778236140, "aud": "sigstore"}


def test_a_workflow_claims_what_github_states() -> None:
    assert claims_of(UAT_AWS) == {
        "iss": "https://token.actions.githubusercontent.com",
        "sub": "repo:NVIDIA/aicr:ref:refs/heads/main",
        "repository": "NVIDIA/aicr",
        "repository_id": "880011223",
        "repository_owner": "NVIDIA",
        "repository_owner_id": "1728152",
        "repository_visibility": "public",
        "ref": "refs/heads/main",
        "sha": "5d582e1f1749c0ffee00000000000000000a1c71",
        "event_name": "schedule",
        "workflow": "validation",
        "workflow_ref": "NVIDIA/aicr/.github/workflows/uat-aws.yaml@refs/heads/main",
        "workflow_sha": "5d582e1f1749c0ffee00000000000000000a1c71",
        "job_workflow_ref": "NVIDIA/aicr/.github/workflows/uat-aws.yaml@refs/heads/main",
        "job_workflow_sha": "5d582e1f1749c0ffee00000000000000000a1c71",
        "run_id": "7000000001",
        "run_attempt": "1",
        "runner_environment": "github-hosted",
    }


def test_a_person_of_github_signs_in_through_the_federation() -> None:
    claims = claims_of(DEV_TWO)

    assert (claims["iss"], claims["email"], claims["email_verified"]) == (
        "https://oauth2.sigstore.dev/auth",
        "dev-two@example.org",
        True,
    )
    assert claims["federated_claims"]["connector_id"] == "https://github.com/login/oauth"


@pytest.mark.parametrize(
    ("identity", "challenge"),
    [
        pytest.param(UAT_AWS, "repo:NVIDIA/aicr:ref:refs/heads/main", id="workflow"),
        pytest.param(caller_of(UAT_AWS, "a/b"), "repo:a/b:ref:refs/heads/main", id="reusable-workflow"),
        pytest.param(OCTOCAT, "1234567+octocat@users.noreply.github.com", id="federated-e-mail"),
        pytest.param(STRANGER, "somebody@stranger.example", id="e-mail"),
        pytest.param(PARTNER, "https://oidc.partner-lab.example/attest", id="uri"),
    ],
)
def test_an_identity_comes_back_from_its_claims(identity: Any, challenge: str) -> None:
    subject = subject_of(claims_of(identity))

    assert subject.identity == identity
    assert subject.challenge == challenge


@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
def test_an_independent_library_verifies_a_token_with_the_published_keys(algorithm: str) -> None:
    token = ISSUER.token(OCTOCAT, now=NOW, algorithm=algorithm)
    keys = jwt.PyJWKSet.from_dict(ISSUER.key_set())

    key = keys[jwt.get_unverified_header(token)["kid"]]

    claims = jwt.decode(
        token,
        key,
        algorithms=[algorithm],
        audience="sigstore",
        options={"verify_exp": False, "verify_nbf": False, "verify_iat": False},
    )

    assert claims["email"] == "1234567+octocat@users.noreply.github.com"


@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
@pytest.mark.parametrize("identity", list(SAMPLE_SIGNERS.values()), ids=list(SAMPLE_SIGNERS))
def test_the_issuer_verifies_its_own_tokens(identity: Any, algorithm: str) -> None:
    token = ISSUER.token(identity, now=NOW, algorithm=algorithm)

    assert ISSUER.verify(token, now=NOW + timedelta(minutes=4)).identity == identity


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({"aud": "somebody"}, "expected audience 'sigstore', found 'somebody'", id="audience"),
        pytest.param({"aud": None}, "expected audience 'sigstore', found None", id="no-audience"),
        pytest.param({"exp": 1778235840}, "within its validity period", id="expired"),
        pytest.param({"nbf": 1778235841}, "within its validity period", id="not-yet"),
        pytest.param({"exp": "soon"}, "expected a number in claim 'exp'", id="exp-text"),
        pytest.param({"exp": True}, "expected a number in claim 'exp'", id="exp-bool"),
        pytest.param({"iss": "https://elsewhere.example"}, "expected a simulated issuer", id="issuer"),
        pytest.param({"email_verified": False}, "expected a verified e-mail", id="unverified"),
        pytest.param({"email_verified": "true"}, "expected a verified e-mail", id="verified-as-text"),
        pytest.param({"federated_claims": None}, "expected a text claim 'connector_id'", id="no-connector"),
        pytest.param({"email": ""}, "expected a text claim 'email'", id="empty-email"),
    ],
)
def test_a_person_with_other_claims_is_refused(changes: dict[str, Any], said: str) -> None:
    token = ISSUER.sign(claims_of(OCTOCAT) | TIMES | changes)

    with pytest.raises(TokenRefused, match=said):
        ISSUER.verify(token, now=NOW)


@pytest.mark.parametrize(
    ("identity", "changes", "said"),
    [
        pytest.param(PARTNER, {"sub": "https://other.example/attest"}, "expected a subject below", id="other-host"),
        pytest.param(PARTNER, {"sub": "http://oidc.partner-lab.example/x"}, "expected a subject below", id="scheme"),
        pytest.param(PARTNER, {"sub": "attest"}, "expected a subject below", id="no-uri"),
        pytest.param(UAT_AWS, {"repository": "a/b"}, "expected workflow_ref a/b/<path>@refs/heads/main", id="repo"),
        pytest.param(UAT_AWS, {"repository_id": 880011223}, "expected a text claim 'repository_id'", id="id-number"),
        pytest.param(UAT_AWS, {"job_workflow_ref": None}, "expected a text claim 'job_workflow_ref'", id="no-job"),
    ],
)
def test_a_machine_with_other_claims_is_refused(identity: Any, changes: dict[str, Any], said: str) -> None:
    token = ISSUER.sign(claims_of(identity) | TIMES | changes)

    with pytest.raises(TokenRefused, match=said):
        ISSUER.verify(token, now=NOW)


def segment(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


GOOD = ISSUER.token(OCTOCAT, now=NOW)
HEADER, CLAIMS, SIGNATURE = GOOD.split(".")


@pytest.mark.parametrize(
    ("token", "said"),
    [
        pytest.param("", "three parts, found 1", id="empty"),
        pytest.param(f"{HEADER}.{CLAIMS}", "three parts, found 2", id="no-signature"),
        pytest.param(f"{HEADER}.{CLAIMS}.", "signed by the sandbox issuer", id="empty-signature"),
        pytest.param(f"{HEADER}.{segment(claims_of(DEV_TWO) | TIMES)}.{SIGNATURE}", "signed by", id="swapped-claims"),
        pytest.param(f"{segment({'alg': 'none'})}.{CLAIMS}.", "signed by the sandbox issuer", id="alg-none"),
        pytest.param(
            f"{segment({'alg': 'RS256', 'kid': 'sandbox-es256'})}.{CLAIMS}.{SIGNATURE}", "signed by", id="alg-confused"
        ),
        pytest.param(f"{segment({'alg': ['ES256']})}.{CLAIMS}.{SIGNATURE}", "signed by", id="alg-list"),
        pytest.param(f"{segment([1])}.{CLAIMS}.{SIGNATURE}", "expected a JSON object", id="header-list"),
        pytest.param(f"!!.{CLAIMS}.{SIGNATURE}", "expected base64url", id="no-base64"),
        pytest.param(f"{segment('x')[:-1]}.{CLAIMS}.{SIGNATURE}", "expected", id="no-json"),
        pytest.param("a" * 20000, "at most 16384 characters", id="huge"),
        pytest.param(
            UnsafeSimulatedIssuer(SAMPLE_SIGNERS).token(OCTOCAT, now=NOW),
            "signed by the sandbox issuer",
            id="other-keys",
        ),
    ],
)
def test_a_token_that_the_issuer_did_not_sign_is_refused(token: str, said: str) -> None:
    with pytest.raises(TokenRefused, match=said):
        ISSUER.verify(token, now=NOW)


def test_the_discovery_document_names_the_danger() -> None:
    document = ISSUER.discovery("http://127.0.0.1:1")

    assert document["issuer"] == "http://127.0.0.1:1"
    assert document["dangerous_simulated_issuers"] == [
        "https://login.stranger.example",
        "https://oauth2.sigstore.dev/auth",
        "https://oidc.partner-lab.example",
        "https://token.actions.githubusercontent.com",
    ]
