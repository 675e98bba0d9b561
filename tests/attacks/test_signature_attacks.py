"""Attacks on signatures that are known from other systems, each named after its kind."""

import base64
import hashlib
import json
from typing import Any

import pytest

from app.adapters.sigstore.roots import TrustRoots, load_root
from app.adapters.sigstore.verifier import SigstoreVerifier
from app.core.bundle import Pins
from app.core.cross_check import SignerClaim, cross_check
from app.core.errors import InputError
from app.core.identity import SignerIdentity, canonical_source_id
from app.core.refs import Digest
from app.sandbox.identities import DEV_TWO, OCTOCAT, PARTNER_ISSUER, UAT_AWS, SandboxIdentity, SanKind, caller_of
from app.sandbox.sigstore import PrivateSigstore, Stamp
from tests.support.signatures import (
    AT,
    STATEMENT,
    accepted,
    edited,
    minted,
    private_root,
    refused,
    sigstore,
    statement_json,
)

GITHUB_OAUTH = "https://github.com/login/oauth"


def _material(bundle: bytes) -> Any:
    return json.loads(bundle)["verificationMaterial"]


@pytest.mark.parametrize("log", ["v1", "v2"])
def test_log_entry_mismatch(log: str) -> None:
    """The entry of another signature stands in for one that was never logged."""
    honest, unlogged = minted(log=log), minted(log=log, statement=statement_json(predicate={"x": 1}))
    swapped = edited(unlogged, lambda b: b["verificationMaterial"].update(tlogEntries=_material(honest)["tlogEntries"]))
    assert "sigstore verification failed" in refused(swapped).message


def test_log_entry_of_another_signer() -> None:
    """Certificate and signature are one signer's, the log entry with its time another's."""
    honest, other = minted(log="v1"), minted(log="v1", identity=DEV_TWO)
    swapped = edited(other, lambda b: b["verificationMaterial"].update(tlogEntries=_material(honest)["tlogEntries"]))
    assert refused(swapped).rule == "SIGSTORE"


def test_attestation_type_confusion_by_payload_type() -> None:
    """A well-signed envelope of another protocol whose payload happens to read as a statement."""
    assert refused(minted(payload_type="application/vnd.docker.distribution.manifest.v2+json")).rule == "S4"


def test_attestation_type_confusion_by_predicate_type() -> None:
    """Build provenance is no proof that a recipe ran."""
    verdict = refused(minted(statement=statement_json(predicateType="https://slsa.dev/provenance/v1")))
    assert verdict.rule == "COHERENCE"


def test_attestation_type_confusion_by_logged_artifact() -> None:
    """The log entry is about the payload as a file, not about the envelope."""

    def as_file(body: dict[str, Any]) -> dict[str, Any]:
        digest = base64.b64encode(hashlib.sha256(STATEMENT).digest()).decode()
        body["spec"]["hashedRekordV002"]["data"]["digest"] = digest
        return body

    assert refused(minted(body=as_file)).rule == "SIGSTORE"


@pytest.mark.parametrize("keep", [True, False], ids=["beside the certificate", "instead of it"])
def test_public_key_bundle_where_a_certificate_is_due(keep: bool) -> None:  # noqa: FBT001
    def edit(bundle: dict[str, Any]) -> None:
        material = bundle["verificationMaterial"]
        material["publicKey"] = {"hint": "release key"}
        if not keep:
            del material["certificate"]

    assert refused(edited(minted(), edit)).rule == "S13"


def test_threshold_by_duplicate_keys() -> None:
    """One key signs twice, or one timestamp counts twice."""
    assert refused(minted(signatures=2)).rule == "S6"

    def twice(bundle: dict[str, Any]) -> None:
        stamps = bundle["verificationMaterial"]["timestampVerificationData"]["rfc3161Timestamps"]
        stamps.append(stamps[0])

    assert refused(edited(minted(), twice)).rule in {"S12", "SIGSTORE"}


def test_regex_not_anchored() -> None:
    """A pin that is not anchored finds its text inside of a longer identity; an anchored one does not."""
    evil = minted(identity=SandboxIdentity(GITHUB_OAUTH, SanKind.EMAIL, "dev-two@example.org.evil.example"))
    accepted(evil, pins=Pins(identity_regexp="dev-two@example[.]org"))
    assert refused(evil, pins=Pins(identity_regexp="^dev-two@example[.]org$")).rule == "PIN"
    assert refused(evil, pins=Pins(issuer=GITHUB_OAUTH, identity_regexp="^dev-two@example[.]org$")).rule == "PIN"


@pytest.mark.parametrize(
    "identity",
    [
        pytest.param("dev-tw\u043e@example.org", id="homoglyph in an address"),
        pytest.param("dev-two\u200b@example.org", id="zero-width space in an address"),
        pytest.param("dev-two@example.org\u202e", id="bidi override in an address"),
    ],
)
def test_identity_by_homoglyph_and_zero_width(identity: str) -> None:
    """A name may only hold ASCII, so a look-alike is no certificate at all."""
    for kind in (SanKind.EMAIL, SanKind.URI):
        assert refused(minted(names=((kind, identity),))).rule == "S14"


def test_issuer_by_homoglyph_is_another_signer() -> None:
    """An issuer may hold any letter: the look-alike verifies under its own root, as somebody else."""
    fake = "https://github.c\u043em/login/oauth"
    signature = accepted(minted(issuer=fake, issuer_raw=fake))
    assert signature.signer.slug != OCTOCAT.signer.slug
    fault = cross_check(SignerClaim(OCTOCAT.value, GITHUB_OAUTH), signature)
    assert fault is not None
    assert fault.code == "S17_ISSUER_MISMATCH"


def test_email_case() -> None:
    """Mail systems may ignore case; signers are told apart by it."""
    signature = accepted(minted(identity=SandboxIdentity(GITHUB_OAUTH, SanKind.EMAIL, "Dev-Two@example.org")))
    assert signature.signer.slug != DEV_TWO.signer.slug
    fault = cross_check(SignerClaim("dev-two@example.org", GITHUB_OAUTH), signature)
    assert fault is not None
    assert fault.code == "S17_IDENTITY_MISMATCH"


def test_newline_in_identity() -> None:
    """Issuer and identity are hashed with a newline between them, so neither may hold one."""
    assert refused(minted(names=((SanKind.URI, "b\nc"),), issuer="https://a", issuer_raw="https://a")).rule == "S14"
    assert refused(minted(issuer="https://a\nb", issuer_raw="https://a\nb")).rule == "S15"
    for issuer, identity in (("https://a\nb", "c"), ("https://a", "b\nc")):
        with pytest.raises(InputError):
            canonical_source_id(issuer, identity)


@pytest.mark.parametrize("key", ["Payload", "PAYLOAD", "payLoad"])
def test_json_case_variant_keys(key: str) -> None:
    """One verifier reads the signed payload, another the one beside it."""
    evil = base64.b64encode(statement_json(predicate={"evil": 1})).decode()
    assert refused(edited(minted(), lambda b: b["dsseEnvelope"].update({key: evil}))).rule == "S2"


def test_json_case_variant_keys_in_the_signed_statement() -> None:
    """The signer himself shows two readers two results."""
    payload = STATEMENT.replace(b'"phases": {}', b'"phases": {}, "Phases": {"deployment": {"failed": 3}}')
    assert refused(minted(statement=payload)).rule == "S2"


@pytest.mark.parametrize(
    "nothing",
    [
        pytest.param(b"", id="no byte"),
        pytest.param(b"{}", id="no field"),
        pytest.param(b"null", id="null"),
        pytest.param(
            b'{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"tlogEntries":[]},'
            b'"dsseEnvelope":{"payload":"","payloadType":"application/vnd.in-toto+json","signatures":[]}}',
            id="no content",
        ),
    ],
)
def test_vacuous_pass_on_empty_input(nothing: bytes) -> None:
    refused(nothing)


def test_vacuous_pass_without_a_root() -> None:
    assert refused(minted(), by=SigstoreVerifier(TrustRoots(()))).rule == "S10"


def test_replay_of_one_signature_for_another_artifact() -> None:
    """A signature that verifies is attached to an artifact that it is not about."""
    verdict = refused(minted(), artifact=Digest(hashlib.sha256(b"another artifact").hexdigest()))
    assert (verdict.rule, "does not match pulled artifact digest" in verdict.message) == ("S16", True)


def test_another_owners_repository_calls_a_trusted_reusable_workflow() -> None:
    """The certificate names the trusted workflow; who called it takes the weight."""
    borrowed = accepted(minted(identity=caller_of(UAT_AWS, "mallory/borrower")))
    honest = accepted(minted(identity=UAT_AWS))
    assert borrowed.signer.identity == honest.signer.identity
    assert borrowed.weightless.startswith("S18_OTHER_REPOSITORY")
    assert "https://github.com/mallory/borrower" in borrowed.weightless
    assert honest.weightless == ""


def test_a_private_root_that_mints_a_public_issuers_identity() -> None:
    """The private instance certifies upstream's own workflow; its chain verifies, and it is not believed."""
    partner = PrivateSigstore(host="partner.example")
    roots = TrustRoots(
        (
            TrustRoots.from_setting("public-good").roots[0],
            load_root(
                "partner", partner.trusted_root_json(), issuers=frozenset({PARTNER_ISSUER}), reserved=frozenset()
            ),
        )
    )
    judge = SigstoreVerifier(roots)
    verdict = refused(partner.mint(STATEMENT, UAT_AWS, at=AT), by=judge)
    assert verdict.code == "ROOT_NOT_FOR_ISSUER"
    honest = SandboxIdentity(PARTNER_ISSUER, SanKind.URI, f"{PARTNER_ISSUER}/attest")
    assert accepted(partner.mint(STATEMENT, honest, at=AT), by=judge).signer == SignerIdentity(
        PARTNER_ISSUER, f"{PARTNER_ISSUER}/attest"
    )


def test_a_log_vouches_for_another_logs_entry() -> None:
    """An entry claims the id of a log that the root trusts too; only that log's own key may sign for it."""
    v1, v2 = (base64.b64encode(sigstore().logs[log].log_id).decode() for log in ("v1", "v2"))  # type: ignore[index]
    for log, other in (("v1", v2), ("v2", v1)):
        moved = edited(
            minted(log=log),
            lambda b, other=other: b["verificationMaterial"]["tlogEntries"][0]["logId"].update(keyId=other),
        )
        refused(moved)


def test_a_timestamp_for_another_signature() -> None:
    """The old timestamp of another bundle makes a certificate look fresh that has long expired."""
    assert refused(minted(stamps=(Stamp.OTHER_MESSAGE,))).rule == "SIGSTORE"
    honest = minted()
    late = edited(
        minted(statement=statement_json(predicate={"x": 1})),
        lambda b: b["verificationMaterial"].update(
            timestampVerificationData=_material(honest)["timestampVerificationData"]
        ),
    )
    assert refused(late).rule == "SIGSTORE"


def test_a_root_of_the_same_names_with_other_keys() -> None:
    """Names prove nothing: an instance that calls itself like the trusted one is a stranger."""
    imitation = PrivateSigstore()
    judge = SigstoreVerifier(TrustRoots((private_root(),)))
    assert refused(imitation.mint(STATEMENT, OCTOCAT, at=AT), by=judge).rule == "S10"
