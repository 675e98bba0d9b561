"""What the judge says beyond its rules: engine refusals, pins, foreign exceptions, several roots."""

import binascii
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from cryptography.x509 import ExtensionNotFound, ObjectIdentifier
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from app.adapters.sigstore.engine import Engine
from app.adapters.sigstore.roots import TrustRoots, load_root
from app.adapters.sigstore.verifier import SignatureOnly, SigstoreVerifier
from app.core.bundle import Pins, SignatureRefused, VerifiedSignature
from app.core.errors import Category
from app.sandbox.identities import OCTOCAT, PARTNER, PARTNER_ISSUER, UAT_AWS
from app.sandbox.sigstore import Faults, LeafKey, PrivateSigstore, Promise, Sct, Stamp, stamps
from tests.support.signatures import (
    ARTIFACT,
    AT,
    STATEMENT,
    accepted,
    edited,
    judged,
    minted,
    private_root,
    refused,
    sigstore,
    statement_json,
    verifier,
)


def _flip(text: str) -> str:
    """Another base64 text of the same length, canonical too."""
    return ("B" if text[0] != "B" else "C") + text[1:]


def _flip_signature(document: dict[str, Any]) -> None:
    signature = document["dsseEnvelope"]["signatures"][0]
    signature["sig"] = signature["sig"][:20] + _flip(signature["sig"][20:])


def _flip_certificate(document: dict[str, Any]) -> None:
    certificate = document["verificationMaterial"]["certificate"]
    certificate["rawBytes"] = certificate["rawBytes"][:-8] + _flip(certificate["rawBytes"][-8:])


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: edited(minted(), _flip_signature), id="altered signature"),
        pytest.param(lambda: edited(minted(), _flip_certificate), id="altered certificate"),
        pytest.param(lambda: minted(signed_payload=statement_json(predicate={})), id="another payload was signed"),
        pytest.param(
            lambda: minted(log="v1", signed_payload=statement_json(predicate={})), id="another payload was logged"
        ),
        pytest.param(lambda: minted(sct=Sct.NONE), id="certificate that no CT log saw"),
        pytest.param(lambda: minted(sct=Sct.FOREIGN), id="certificate of a foreign CT log"),
        pytest.param(lambda: minted(sct=Sct.IMPOSTOR), id="certificate with a forged SCT"),
        pytest.param(lambda: minted(sct=Sct.TWO), id="two SCTs"),
        pytest.param(lambda: minted(code_signing=False), id="certificate for something else"),
        pytest.param(lambda: minted(digital_signature=False), id="key that may not sign"),
        pytest.param(lambda: minted(checkpoint_by_stranger=True), id="checkpoint by a stranger"),
        pytest.param(lambda: minted(log="v1", promise=Promise.ALTERED), id="altered promise"),
        pytest.param(lambda: minted(log="v1", log_index=7, promise=Promise.FOR_TRUE_INDEX), id="forged v1 index"),
        pytest.param(lambda: minted(proof_hashes=(b"\1" * 32,) * 3), id="forged path"),
        pytest.param(lambda: minted(stamps=()), id="v2 without a timestamp"),
        pytest.param(lambda: minted(stamps=(Stamp.FOREIGN,)), id="v2 with a stranger's timestamp"),
        pytest.param(lambda: minted(stamps=(Stamp.MALFORMED,)), id="timestamp that is no DER"),
        pytest.param(lambda: minted(stamps=(Stamp.GOOD, Stamp.REFUSED)), id="timestamp that was refused"),
    ],
)
def test_the_engine_refuses_with_upstreams_text(make: Any) -> None:
    verdict = refused(make())
    assert verdict.rule in {"SIGSTORE", "S12"}
    assert "sigstore verification failed" in verdict.message
    assert verdict.category is Category.UNAUTHORIZED
    assert verdict.message.isprintable()


def test_a_chain_that_ends_elsewhere_advises_to_refresh_the_root() -> None:
    imitation = PrivateSigstore()
    imitation.instance = type(imitation.instance)(
        imitation.ca,
        sigstore().ct_log,
        sigstore().timestamping,
        imitation.instance.foreign_ct_log,
        imitation.instance.foreign_timestamping,
    )
    imitation.logs = sigstore().logs
    verdict = refused(imitation.mint(STATEMENT, OCTOCAT, at=AT))
    assert (verdict.rule, verdict.code) == ("SIGSTORE", "CERTIFICATE_CHAIN_UNTRUSTED")
    assert "sigstore verification failed" in verdict.message
    assert "refresh the trusted root" in verdict.message
    assert verdict.hint is not None
    assert "--trusted-root" in verdict.hint


def test_a_certificate_that_had_expired_when_it_signed_is_refused() -> None:
    verdict = refused(minted(leaf_age=Faults().leaf_lifetime * 2))
    assert verdict.rule == "SIGSTORE"


def test_a_bundle_of_another_instance_names_its_log() -> None:
    stranger = PrivateSigstore()
    verdict = refused(stranger.mint(STATEMENT, OCTOCAT, at=AT))
    assert verdict.code == "S10_LOG_UNKNOWN"
    assert "sigstore verification failed" in verdict.message
    assert "refresh the trusted root" in verdict.message


class _Panic(BaseException):
    """Like the panics of Rust code, which are no `Exception`."""


class _Model(BaseModel):
    number: int


def _validation_error() -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        _Model.model_validate({"number": "x"})
    return caught.value


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ExtensionNotFound("no extension", ObjectIdentifier("1.2.3")), id="ExtensionNotFound"),
        pytest.param(TypeError("no curve"), id="TypeError"),
        pytest.param(ValueError("bad DER\n\x1b[31m"), id="ValueError"),
        pytest.param(binascii.Error("padding"), id="binascii.Error"),
        pytest.param(OverflowError("2^63"), id="OverflowError"),
        pytest.param(AttributeError("verify"), id="AttributeError"),
        pytest.param(_validation_error(), id="ValidationError"),
        pytest.param(RecursionError("too deep"), id="RecursionError"),
        pytest.param(KeyError(), id="no text"),
        pytest.param(_Panic("rust"), id="a panic"),
    ],
)
def test_a_foreign_exception_is_a_refusal(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object) -> bytes:
        raise error

    monkeypatch.setattr(Engine, "run", run)
    verdict = refused(minted())
    assert (verdict.rule, verdict.code) == ("SIGSTORE", "SIGNATURE_VERIFICATION_FAILED")
    assert verdict.message.startswith("sigstore verification failed: malformed bundle (")
    assert verdict.message.isprintable()


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt, SystemExit])
def test_what_ends_the_process_goes_up(error: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object) -> bytes:
        raise error

    monkeypatch.setattr(Engine, "run", run)
    with pytest.raises(error):
        judged(minted())


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: minted(raw_extensions={8: b"no DER"}), id="issuer that is no DER"),
        pytest.param(lambda: minted(raw_extensions={1: b"\xff\xfe"}), id="issuer that is no UTF-8"),
        pytest.param(lambda: minted(raw_extensions={12: b"\x0c\xff"}), id="claim that is no DER"),
        pytest.param(lambda: edited(minted(), _no_certificate), id="certificate that is no DER"),
        pytest.param(lambda: minted(log="v1", integrated_at=9_000_000_000_000), id="time that no calendar has"),
        pytest.param(lambda: minted(leaf_key=LeafKey.ED25519), id="Ed25519 leaf"),
    ],
)
def test_bytes_that_break_a_library_are_a_refusal(make: Any) -> None:
    assert isinstance(judged(make()), SignatureRefused)


def _no_certificate(document: dict[str, Any]) -> None:
    document["verificationMaterial"]["certificate"]["rawBytes"] = "MAA="


@pytest.mark.parametrize(
    ("pins", "message"),
    [
        pytest.param(Pins(issuer="https://github.com/login/oauth"), None, id="issuer"),
        pytest.param(Pins(identity_regexp="octocat"), None, id="identity, searched"),
        pytest.param(Pins(identity_regexp="^1234567[+]octocat@users[.]noreply[.]github[.]com$"), None, id="identity"),
        pytest.param(
            Pins(issuer="https://github.com/login"),
            "sigstore verification failed: expected issuer 'https://github.com/login', "
            "the certificate says 'https://github.com/login/oauth'",
            id="other issuer",
        ),
        pytest.param(
            Pins(identity_regexp="^octocat"),
            "sigstore verification failed: expected an identity that matches '^octocat', "
            "the certificate says '1234567+octocat@users.noreply.github.com'",
            id="other identity",
        ),
    ],
)
def test_pins_are_asked_of_the_certificate(pins: Pins, message: str | None) -> None:
    verdict = judged(minted(), pins=pins)
    if message is None:
        assert isinstance(verdict, VerifiedSignature)
    else:
        assert isinstance(verdict, SignatureRefused)
        assert (verdict.rule, verdict.code, verdict.message) == ("PIN", "PIN_MISMATCH", message)


def test_a_pin_does_not_hide_a_bad_signature() -> None:
    verdict = refused(edited(minted(), _flip_signature), pins=Pins(issuer="https://github.com/login/oauth"))
    assert verdict.rule == "SIGSTORE"


def test_a_regexp_that_re2_does_not_take_is_refused() -> None:
    verdict = refused(minted(), pins=Pins(identity_regexp="(?=octocat)"))
    assert (verdict.rule, verdict.code, verdict.category) == ("PIN", "PIN_INVALID", Category.INVALID_REQUEST)


@pytest.mark.parametrize(
    ("changes", "rule", "message"),
    [
        pytest.param(
            {"predicateType": "https://slsa.dev/provenance/v1"}, "COHERENCE", "unexpected predicateType", id="foreign"
        ),
        pytest.param(
            {"predicateType": "https://aicr.run/recipe-evidence/v2"},
            "COHERENCE",
            "requires the predicate profile block",
            id="v2 without a block",
        ),
        pytest.param({"subject": []}, "STATEMENT", "at least one subject", id="no subject"),
        pytest.param({"subject": [{"name": "x", "digest": {"sha1": "00"}}]}, "STATEMENT", "sha256", id="no sha256"),
        pytest.param({"subject": [{"name": "x", "digest": {"sha256": "xyz"}}]}, "STATEMENT", "64 hex", id="no hex"),
        pytest.param({"predicateType": None}, "STATEMENT", "predicateType", id="no type"),
    ],
)
def test_a_statement_that_is_no_evidence_is_refused(changes: dict[str, Any], rule: str, message: str) -> None:
    verdict = refused(minted(statement=statement_json(**changes)))
    assert verdict.rule == rule
    assert message in verdict.message
    assert verdict.category is Category.INVALID_REQUEST


def test_signature_only_takes_any_predicate() -> None:
    bundle = minted(
        statement=statement_json(
            predicateType="https://slsa.dev/provenance/v1",
            subject=[{"name": "a.txt", "digest": {"sha512": "ab" * 64}, "annotations": {"x": 1}}],
        ),
        identity=UAT_AWS,
        log="v1",
    )
    said = verifier().verify_signature_only(bundle)
    assert isinstance(said, SignatureOnly)
    index = said.signature.log.index
    assert said.to_json() == {
        "identity": "https://github.com/NVIDIA/aicr/.github/workflows/uat-aws.yaml@refs/heads/main",
        "issuer": "https://token.actions.githubusercontent.com",
        "root": "sandbox",
        "log": "rekor.sandbox.example",
        "logId": said.signature.log.log_id,
        "logIndex": index,
        "loggedAt": "2026-05-08T10:24:00Z",
        "payloadType": "application/vnd.in-toto+json",
        "predicateType": "https://slsa.dev/provenance/v1",
        "subject": {"name": "a.txt", "digest": {"sha512": "ab" * 64}},
    }


def test_signature_only_keeps_every_other_rule() -> None:
    said = verifier().verify_signature_only(minted(leaf_key=LeafKey.P384))
    assert isinstance(said, SignatureRefused)
    assert said.rule == "S13"
    subject = verifier().verify_signature_only(minted(), artifact=type(ARTIFACT)("00" * 32))
    assert isinstance(subject, SignatureRefused)
    assert subject.rule == "S16"


def test_the_root_that_verified_is_named_whatever_the_order() -> None:
    partner = PrivateSigstore(host="partner.example")
    own = private_root("own", issuers=frozenset({"https://github.com/login/oauth"}))
    theirs = load_root("theirs", partner.trusted_root_json(), issuers=frozenset({PARTNER_ISSUER}), reserved=frozenset())
    for roots in ((own, theirs), (theirs, own)):
        judge = SigstoreVerifier(TrustRoots(roots))
        assert accepted(minted(), by=judge).root == "own"
        assert accepted(partner.mint(STATEMENT, PARTNER, at=AT), by=judge).root == "theirs"
        verdict = refused(partner.mint(STATEMENT, OCTOCAT, at=AT), by=judge)
        assert (verdict.rule, verdict.code) == ("ROOT", "ROOT_NOT_FOR_ISSUER")


def test_two_roots_that_know_one_log_are_both_asked() -> None:
    first = private_root("first", issuers=frozenset({PARTNER_ISSUER}))
    second = private_root("second", issuers=frozenset({"https://github.com/login/oauth"}))
    judge = SigstoreVerifier(TrustRoots((first, second)))
    assert accepted(minted(), by=judge).root == "second"
    assert accepted(minted(identity=PARTNER), by=judge).root == "first"
    assert refused(minted(identity=UAT_AWS), by=judge).rule == "ROOT"


def test_equal_bytes_are_judged_equally_on_many_threads() -> None:
    bundles = [minted(), minted(log="v1"), edited(minted(), _flip_signature)]
    serial = [judged(bundle) for bundle in bundles]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(judged, bundles * 4)) == serial * 4


_GOOD = {log: minted(log=log, stamps=stamps(1)) for log in ("v1", "v2")}


def _means(verdict: VerifiedSignature | SignatureRefused, log: str) -> bool:
    """A refusal, or exactly what the unaltered bundle says."""
    if isinstance(verdict, SignatureRefused):
        return True
    good = accepted(_GOOD[log])
    return replace(verdict, bundle_sha256=good.bundle_sha256) == good


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(log=st.sampled_from(["v1", "v2"]), data=st.data())
def test_altered_bytes_never_raise_and_are_accepted_only_when_they_mean_the_same(log: str, data: st.DataObject) -> None:
    good = _GOOD[log]
    cut = data.draw(st.integers(0, len(good) - 1))
    length = data.draw(st.integers(0, 4))
    put = data.draw(st.binary(max_size=4))
    mutated = good[:cut] + put + good[cut + length :]
    verdict = judged(mutated)
    assert _means(verdict, log)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(log=st.sampled_from(["v1", "v2"]), data=st.data())
def test_a_bundle_with_any_other_value_anywhere_is_refused(log: str, data: st.DataObject) -> None:
    document = json.loads(_GOOD[log])
    at: Any = document
    key: Any = "mediaType"
    while True:
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        if not isinstance(at[key], dict | list) or not at[key] or data.draw(st.booleans()):
            break
        at = at[key]
    at[key] = data.draw(_JSON)
    assert _means(judged(json.dumps(document).encode()), log)
