"""Each signature rule is broken alone, around an otherwise good bundle; ids begin with the rule."""

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.adapters.sigstore.roots import TrustRoots
from app.adapters.sigstore.rules import CHECKS
from app.adapters.sigstore.verifier import SigstoreVerifier
from app.core.bundle import VerifiedSignature
from app.core.refs import Digest
from app.core.rules import CODES, RULES, RuleKind
from app.sandbox.identities import OCTOCAT, UAT_AWS, SanKind, caller_of, upstream_workflow
from app.sandbox.sigstore import LeafKey, Promise, Stamp, Window, Windows, stamps
from tests.support.signatures import (
    ARTIFACT,
    AT,
    STATEMENT,
    accepted,
    edited,
    judged,
    limited,
    minted,
    private_root,
    refused,
    statement_json,
)

Make = Callable[[], bytes]


def _entry(document: dict[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = document["verificationMaterial"]["tlogEntries"][0]
    return entry


def _put(path: str, value: object) -> Callable[[dict[str, Any]], None]:
    """Set one value of the bundle; numbers in the path index lists, None takes the key out."""

    def edit(document: dict[str, Any]) -> None:
        at: Any = document
        *way, last = path.split(".")
        for step in way:
            at = at[int(step)] if step.isdigit() else at[step]
        if value is None:
            del at[last]
        else:
            at[last] = value

    return edit


def _text(bundle: bytes, old: str, new: str) -> bytes:
    text = bundle.decode()
    assert text.count(old) >= 1, old
    return text.replace(old, new, 1).encode()


def _rewritten(bundle: bytes, path: str, change: Callable[[str], str]) -> bytes:
    def edit(document: dict[str, Any]) -> None:
        at: Any = document
        *way, last = path.split(".")
        for step in way:
            at = at[int(step)] if step.isdigit() else at[step]
        at[last] = change(at[last])

    return edited(bundle, edit)


_TLOG = "verificationMaterial.tlogEntries.0"
_CHECKPOINT = f"{_TLOG}.inclusionProof.checkpoint.envelope"


def _with_duplicate_in_body(bundle: bytes) -> bytes:
    def change(body: str) -> str:
        return base64.b64encode(base64.b64decode(body).replace(b"{", b'{"kind":"dsse",', 1)).decode()

    return _rewritten(bundle, f"{_TLOG}.canonicalizedBody", change)


def _unpadded_bits(text: str) -> str:
    """The same bytes for a decoder that ignores the bits behind the last one."""
    assert text.endswith("=")
    stem = text.rstrip("=")
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    return stem[:-1] + alphabet[alphabet.index(stem[-1]) + 1] + "=" * (len(text) - len(stem))


def _padded_statement() -> bytes:
    """A statement whose base64 ends with padding."""
    return STATEMENT + b" " * (1 + (3 - (len(STATEMENT) + 1) % 3 + 1) % 3)


def _other_version(body: dict[str, Any]) -> dict[str, Any]:
    return body | {"apiVersion": "0.0.9"}


def _other_kind(body: dict[str, Any]) -> dict[str, Any]:
    return body | {"kind": "intoto"}


def _message_signature(document: dict[str, Any]) -> None:
    signature = document.pop("dsseEnvelope")["signatures"][0]["sig"]
    document["messageSignature"] = {
        "messageDigest": {"algorithm": "SHA2_256", "digest": base64.b64encode(b"\0" * 32).decode()},
        "signature": signature,
    }


def _public_key(document: dict[str, Any]) -> None:
    del document["verificationMaterial"]["certificate"]
    document["verificationMaterial"]["publicKey"] = {"hint": "key-1"}


REFUSED = [
    # S1 has a test of its own for the size.
    pytest.param("S1", lambda: b'{"mediaType":' + b"[" * 10_001, id="S1-more brackets than any bundle has"),
    pytest.param(
        "S1",
        lambda: minted(statement=statement_json(predicate={"rows": [[]] * 200_001})),
        id="S1-more brackets in the payload than any statement has",
    ),
    pytest.param("S2", lambda: b"not json", id="S2-no JSON"),
    pytest.param("S2", lambda: b"[]", id="S2-no object"),
    pytest.param("S2", lambda: b"\xff\xfe{}", id="S2-no UTF-8"),
    pytest.param("S2", lambda: b'{"mediaType":' + b"[" * 5_000, id="S2-nested too deep"),
    pytest.param("S2", lambda: minted() + b"{}", id="S2-a second document"),
    pytest.param(
        "S2", lambda: _text(minted(), '{"mediaType"', '{"mediaType":"x","mediaType"'), id="S2-a key twice at the top"
    ),
    pytest.param("S2", lambda: _text(minted(), '"sig":', '"sig":"AAAA","sig":'), id="S2-a key twice far down"),
    pytest.param(
        "S2", lambda: _text(minted(), '{"mediaType"', '{"MediaType":"x","mediaType"'), id="S2-a key in two cases"
    ),
    pytest.param(
        "S2", lambda: _text(minted(), '{"mediaType"', '{"media_type":"x","mediaType"'), id="S2-a key in two spellings"
    ),
    pytest.param("S2", lambda: _text(minted(), '"payloadType"', '"PayloadType"'), id="S2-a key in another case"),
    pytest.param("S2", lambda: edited(minted(), _put("extra", "x")), id="S2-an unknown field"),
    pytest.param("S2", lambda: edited(minted(), _put("dsseEnvelope.keyid", float("nan"))), id="S2-NaN"),
    pytest.param("S2", lambda: edited(minted(), _put(f"{_TLOG}.logIndex", 0)), id="S2-a number as log index"),
    pytest.param(
        "S2", lambda: edited(minted(), _put(f"{_TLOG}.inclusionProof.treeSize", 1.0)), id="S2-a float as size"
    ),
    pytest.param("S2", lambda: edited(minted(), _put(f"{_TLOG}.logIndex", "+0")), id="S2-a signed index"),
    pytest.param("S2", lambda: edited(minted(), _put(f"{_TLOG}.logIndex", "0_0")), id="S2-an index with underscore"),
    pytest.param("S2", lambda: edited(minted(), _put(f"{_TLOG}.logIndex", "\u0660")), id="S2-an index in other digits"),
    pytest.param(
        "S2", lambda: edited(minted(log="v1"), _put(f"{_TLOG}.integratedTime", str(1 << 63))), id="S2-a time of 2^63"
    ),
    pytest.param("S2", lambda: _with_duplicate_in_body(minted(log="v1")), id="S2-a key twice in the logged body"),
    pytest.param(
        "S2",
        lambda: minted(statement=STATEMENT.replace(b'"_type"', b'"predicateType": "x", "_type"')),
        id="S2-a key twice in the statement",
    ),
    pytest.param(
        "S2",
        lambda: minted(statement=STATEMENT.replace(b'"phases"', b'"Phases"')),
        id="S2-a predicate key in another case",
    ),
    pytest.param(
        "S2",
        lambda: minted(statement=STATEMENT.replace(b'"phases"', '"pha\u017fes"'.encode())),
        id="S2-a predicate key that Go folds",
    ),
    pytest.param(
        "S3",
        lambda: minted(
            log="v1", media_type="application/vnd.dev.sigstore.bundle+json;version=0.1", certificate_chain=True
        ),
        id="S3-format 0.1",
    ),
    pytest.param(
        "S3",
        lambda: minted(media_type="application/vnd.dev.sigstore.bundle+json;version=0.2", certificate_chain=True),
        id="S3-format 0.2",
    ),
    pytest.param("S3", lambda: minted(media_type="application/json"), id="S3-another type"),
    pytest.param("S3", lambda: edited(minted(), _put("mediaType", None)), id="S3-no type"),
    pytest.param("S4", lambda: minted(payload_type="application/json"), id="S4-another payload type"),
    pytest.param("S4", lambda: minted(payload_type="application/vnd.in-toto+JSON"), id="S4-another case"),
    pytest.param("S4", lambda: edited(minted(), _message_signature), id="S4-a message signature instead"),
    pytest.param("S5", lambda: _rewritten(minted(), "dsseEnvelope.payload", lambda t: t + "\n"), id="S5-a line break"),
    pytest.param(
        "S5", lambda: _rewritten(minted(), "dsseEnvelope.payload", lambda t: t[:8] + "*" + t[8:]), id="S5-junk inside"
    ),
    pytest.param(
        "S5",
        lambda: _rewritten(minted(statement=_padded_statement()), "dsseEnvelope.payload", _unpadded_bits),
        id="S5-bits behind the end",
    ),
    pytest.param(
        "S5", lambda: _rewritten(minted(), f"{_TLOG}.logId.keyId", lambda t: t.rstrip("=")), id="S5-no padding"
    ),
    pytest.param(
        "S5",
        lambda: _rewritten(minted(), _CHECKPOINT, lambda t: t[:-1] + "!\n"),
        id="S5-junk in the checkpoint's signature",
    ),
    pytest.param(
        "S5",
        lambda: edited(minted(), _put("dsseEnvelope.payload", base64.b64encode(base64.b64encode(STATEMENT)).decode())),
        id="S5-a payload encoded twice",
    ),
    pytest.param("S6", lambda: minted(signatures=2), id="S6-two signatures"),
    pytest.param("S6", lambda: minted(signatures=0), id="S6-no signature"),
    pytest.param("S6", lambda: minted(tlog_entries=2), id="S6-two entries"),
    pytest.param("S6", lambda: minted(tlog_entries=0), id="S6-no entry"),
    pytest.param("S6", lambda: minted(stamps=stamps(33)), id="S6-33 timestamps"),
    pytest.param(
        "S7", lambda: minted(log="v1", kind_version=("intoto", "0.0.2"), body=_other_kind), id="S7-another kind"
    ),
    pytest.param("S7", lambda: minted(kind_version=("hashedrekord", "0.0.1")), id="S7-another version"),
    pytest.param("S7", lambda: minted(log="v1", body=_other_version), id="S7-another apiVersion in a v1 body"),
    pytest.param("S7", lambda: minted(body=_other_version), id="S7-another apiVersion in a v2 body"),
    pytest.param("S7", lambda: minted(log="v1", body=_other_kind), id="S7-another kind in the body"),
    pytest.param("S8", lambda: minted(checkpoint_size=1_000_000), id="S8-another size in the checkpoint"),
    pytest.param("S8", lambda: minted(log="v1", checkpoint_size=1_000_000), id="S8-another size in a v1 checkpoint"),
    pytest.param("S8", lambda: minted(checkpoint_root=b"\1" * 32), id="S8-another root in the checkpoint"),
    pytest.param("S8", lambda: edited(minted(), _put(_CHECKPOINT, "no note")), id="S8-no note"),
    pytest.param(
        "S8", lambda: edited(minted(), _put(f"{_TLOG}.inclusionProof.checkpoint", None)), id="S8-no checkpoint"
    ),
    pytest.param("S8", lambda: minted(inclusion_proof=False), id="S8-no proof"),
    pytest.param(
        "S9", lambda: minted(log="v1", promise=Promise.ABSENT, stamps=stamps(1)), id="S9-v1 without a promise"
    ),
    pytest.param(
        "S9", lambda: minted(log="v1", integrated_at=None, stamps=stamps(1)), id="S9-v1 without integrated time"
    ),
    pytest.param("S9", lambda: minted(log="v1", integrated_at=0, stamps=stamps(1)), id="S9-v1 integrated at zero"),
    pytest.param("S9", lambda: minted(promise=Promise.GOOD), id="S9-v2 with a promise"),
    pytest.param("S9", lambda: minted(integrated_at=1_778_000_000), id="S9-v2 with an integrated time"),
    pytest.param("S9", lambda: minted(log_index=42_000), id="S9-v2 with another index than its proof"),
    pytest.param("S10", lambda: minted(log_id=b"\7" * 32), id="S10-a log that no root knows"),
    pytest.param("S10", lambda: minted(checkpoint_origin="rekor.sigstore.dev"), id="S10-a foreign origin"),
    pytest.param(
        "S10",
        lambda: minted(log="v1", checkpoint_origin="rekor.other.example - 1193050959916656506"),
        id="S10-a foreign v1 origin",
    ),
    pytest.param(
        "S10",
        lambda: minted(log="v1", checkpoint_origin="rekor.sandbox.example - today"),
        id="S10-an origin without a tree number",
    ),
    pytest.param("S12", lambda: minted(log="v1", stamps=(Stamp.FOREIGN,)), id="S12-a stranger's beside a good promise"),
    pytest.param("S12", lambda: minted(log="v1", stamps=(Stamp.OTHER_MESSAGE,)), id="S12-one over something else"),
    pytest.param("S12", lambda: minted(stamps=(Stamp.GOOD, Stamp.FOREIGN)), id="S12-one of two"),
    pytest.param("S13", lambda: minted(leaf_key=LeafKey.P384), id="S13-a P-384 key"),
    pytest.param("S13", lambda: minted(leaf_key=LeafKey.RSA), id="S13-an RSA key"),
    pytest.param("S13", lambda: minted(leaf_key=LeafKey.ED25519), id="S13-an Ed25519 key"),
    pytest.param(
        "S13", lambda: minted(leaf_lifetime=timedelta(minutes=30, seconds=1)), id="S13-longer than 30 minutes"
    ),
    pytest.param("S13", lambda: edited(minted(), _public_key), id="S13-a public key instead"),
    pytest.param("S13", lambda: minted(certificate_chain=True), id="S13-a chain instead"),
    pytest.param("S14", lambda: minted(names=()), id="S14-no name"),
    pytest.param(
        "S14",
        lambda: minted(names=((SanKind.EMAIL, "a@example.org"), (SanKind.EMAIL, "b@example.org"))),
        id="S14-two names",
    ),
    pytest.param("S14", lambda: minted(names=((SanKind.DNS, "example.org"),)), id="S14-a host name"),
    pytest.param("S14", lambda: minted(names=((SanKind.URI, "https://example.org/\nx"),)), id="S14-a newline"),
    pytest.param(
        "S14", lambda: minted(names=((SanKind.URI, "https://example.org/\x7f"),)), id="S14-a control character"
    ),
    pytest.param("S14", lambda: minted(names=((SanKind.URI, " "),)), id="S14-a blank name"),
    pytest.param(
        "S14", lambda: minted(names=((SanKind.EMAIL, "m\u00fc@example.org"),)), id="S14-a letter beyond ASCII"
    ),
    pytest.param("S15", lambda: minted(issuer=None, issuer_raw=None), id="S15-no issuer"),
    pytest.param("S15", lambda: minted(issuer_raw="https://login.other.example"), id="S15-two issuers"),
    pytest.param(
        "S15",
        lambda: minted(issuer="https://login\n.example", issuer_raw=None),
        id="S15-an issuer with a newline",
    ),
    pytest.param(
        "S15",
        lambda: minted(issuer="https://github.com/login/oauth\u200b", issuer_raw=None),
        id="S15-an issuer with a zero-width space",
    ),
    pytest.param(
        "S16", lambda: minted(statement=statement_json(_type="https://example.org/Statement/v1")), id="S16-another type"
    ),
    pytest.param(
        "S16",
        lambda: minted(statement=statement_json(subject=[{"name": "x", "digest": {"sha256": "00" * 32}}])),
        id="S16-another artifact",
    ),
    pytest.param(
        "S16",
        lambda: minted(
            statement=statement_json(
                subject=[
                    {"name": "x", "digest": {"sha256": "00" * 32}},
                    {"name": "y", "digest": {"sha256": ARTIFACT.hex}},
                ]
            )
        ),
        id="S16-the artifact as second subject",
    ),
]


@pytest.mark.parametrize("log", ["v1", "v2"])
def test_an_honest_bundle_is_accepted(log: str) -> None:
    signature = accepted(minted(log=log))
    assert signature.signer.identity == "1234567+octocat@users.noreply.github.com"
    assert signature.signer.issuer == "https://github.com/login/oauth"
    assert signature.logged_at == AT
    assert signature.statement.payload == STATEMENT
    assert signature.weightless == ""
    assert signature.root == "sandbox"
    assert signature.log.log == {"v1": "rekor.sandbox.example", "v2": "log2026-1.rekor.sandbox.example"}[log]
    assert signature.log.kind == {"v1": "dsse", "v2": "hashedrekord"}[log]
    assert signature.log.index - signature.log.proof_index == {"v1": 25_579, "v2": 0}[log]


@pytest.mark.parametrize(("rule", "make"), REFUSED)
def test_the_rule_refuses(rule: str, make: Make) -> None:
    verdict = refused(make())
    assert (verdict.rule, CODES[verdict.code].id) == (rule, rule), verdict
    assert verdict.message
    assert verdict.hint == RULES[rule].cure


@pytest.mark.parametrize("over", [pytest.param(1, id="S1-one byte too many")])
def test_the_size_rule_looks_before_it_parses(over: int) -> None:
    bundle = minted()
    assert judged(bundle, by=limited(len(bundle))) == judged(bundle)
    verdict = refused(bundle + b"\0" * over, by=limited(len(bundle)))
    assert (verdict.rule, verdict.code) == ("S1", "S1_BUNDLE_TOO_LARGE")
    assert verdict.message == f"expected a Sigstore bundle of at most {len(bundle)} bytes, got {len(bundle) + over}"


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: minted(media_type="application/vnd.dev.sigstore.bundle+json;version=0.3"), id="S3"),
        pytest.param(lambda: minted(stamps=stamps(32)), id="S6"),
        pytest.param(lambda: minted(leaf_lifetime=timedelta(minutes=30)), id="S13"),
        pytest.param(lambda: minted(issuer=None), id="S15-only the raw issuer"),
        pytest.param(lambda: minted(issuer_raw=None), id="S15-only the newer issuer"),
        pytest.param(lambda: minted(log="v1", stamps=stamps(1)), id="S12"),
        pytest.param(lambda: minted(statement=statement_json(_type="https://in-toto.io/Statement/v0.1")), id="S16"),
        pytest.param(lambda: json.dumps(json.loads(minted()), indent=2).encode() + b"\n", id="S2-indented"),
        pytest.param(lambda: _text(minted(), '"mediaType"', '"media_type"'), id="S2-original field name"),
        pytest.param(lambda: _text(minted(), '{"mediaType"', '{"messageSignature":null,"mediaType"'), id="S2-null"),
    ],
)
def test_the_edge_of_a_rule_is_accepted(make: Make) -> None:
    accepted(make())


PERIODS = [
    pytest.param("ca", "v1", id="S11-authority"),
    pytest.param("ca", "v2", id="S11-authority of a v2 entry"),
    pytest.param("ct_log", "v2", id="S11-CT log"),
    pytest.param("rekor_v1", "v1", id="S11-v1 log"),
    pytest.param("rekor_v2", "v2", id="S11-v2 log"),
]


def _trusting(windows: Windows) -> SigstoreVerifier:
    return SigstoreVerifier(TrustRoots((private_root(windows=windows),)))


@pytest.mark.parametrize(("part", "log"), PERIODS)
def test_a_time_after_the_roots_period_is_refused(part: str, log: str) -> None:
    ended = Window(end=AT - timedelta(days=1))
    verdict = refused(minted(log=log), by=_trusting(Windows(**{part: ended})))
    assert (verdict.rule, verdict.code) == ("S11", "S11_OUTSIDE_ROOT_WINDOW")
    assert "2026-05-07T10:24:00Z" in verdict.message


@pytest.mark.parametrize(("part", "log"), PERIODS)
def test_a_time_before_the_roots_period_is_refused(part: str, log: str) -> None:
    begun = Window(start=AT + timedelta(days=1))
    assert refused(minted(log=log), by=_trusting(Windows(**{part: begun}))).rule == "S11"


@pytest.mark.parametrize(("part", "log"), PERIODS)
def test_both_ends_of_a_period_are_inside(part: str, log: str) -> None:
    exact = Window(start=AT - timedelta(seconds=2), end=AT)
    accepted(minted(log=log), by=_trusting(Windows(**{part: exact})))


@pytest.mark.parametrize("which", [pytest.param("second", id="S11-the later of two times")])
def test_every_verified_time_must_lie_inside(which: str) -> None:
    late = minted(log="v1", stamps=stamps(1), stamped_at=AT + timedelta(minutes=5))
    assert accepted(late).logged_at == AT
    verdict = refused(late, by=_trusting(Windows(rekor_v1=Window(end=AT + timedelta(minutes=1)))))
    assert verdict.rule == "S11"


def test_the_earliest_verified_time_is_the_logged_time() -> None:
    early = minted(log="v1", stamps=stamps(1), stamped_at=AT - timedelta(seconds=1))
    assert accepted(early).logged_at == datetime(2026, 5, 8, 10, 23, 59, tzinfo=UTC)


@pytest.mark.parametrize("forged", [pytest.param(30, id="S8-thirty pairs of index and size")])
def test_no_forged_pair_of_index_and_size_is_accepted(forged: int) -> None:
    """Without the size rule one bundle verifies under many pairs, since path lengths repeat."""
    bundle = minted()
    for step in range(1, forged + 1):

        def forge(document: dict[str, Any], step: int = step) -> None:
            entry = _entry(document)
            proof = entry["inclusionProof"]
            size = int(proof["treeSize"]) + step
            proof["treeSize"] = str(size)
            index = min(int(proof["logIndex"]) + step, size - 1)
            proof["logIndex"] = entry["logIndex"] = str(index)

        assert refused(edited(bundle, forge)).rule == "S8"


@pytest.mark.parametrize(
    ("make", "code"),
    [
        pytest.param(
            lambda: minted(identity=caller_of(UAT_AWS, "octocat/borrower")),
            "S18_OTHER_REPOSITORY",
            id="S18-a reusable workflow of another repository",
        ),
        pytest.param(
            lambda: minted(identity=upstream_workflow(event="pull_request")),
            "S18_PULL_REQUEST",
            id="S18-a pull request",
        ),
        pytest.param(
            lambda: minted(identity=upstream_workflow(event="pull_request_target")),
            "S18_PULL_REQUEST",
            id="S18-a pull request with the target's rights",
        ),
        pytest.param(
            lambda: minted(identity=OCTOCAT, extensions={12: "https://github.com/octocat/fork"}),
            "S18_OTHER_REPOSITORY",
            id="S18-a repository behind an e-mail address",
        ),
        pytest.param(
            lambda: minted(identity=UAT_AWS, extensions={12: "https://github.com/NVIDIA/aicr2"}),
            "S18_OTHER_REPOSITORY",
            id="S18-a repository whose name goes on",
        ),
    ],
)
def test_a_signature_for_somebody_else_has_no_weight(make: Make, code: str) -> None:
    signature = accepted(make())
    assert signature.weightless.startswith(f"{code}: ")


@pytest.mark.parametrize("event", ["push", "schedule", "release", "workflow_dispatch"])
def test_a_workflow_of_its_own_repository_has_its_full_weight(event: str) -> None:
    signature = accepted(minted(identity=upstream_workflow(event=event)))
    assert signature.weightless == ""
    assert signature.signer == upstream_workflow(event=event).signer
    assert signature.signer.claims.trigger == event
    assert signature.signer.claims.source_repository == "https://github.com/NVIDIA/aicr"
    assert signature.signer.claims.source_owner_id == "1728152"
    assert signature.signer.claims.run_url.startswith("https://github.com/NVIDIA/aicr/actions/runs/")


def test_without_an_artifact_any_subject_will_do() -> None:
    signature = judged(minted(), artifact=None)
    assert isinstance(signature, VerifiedSignature)
    assert refused(minted(), artifact=Digest("00" * 32)).message == (
        f"subject sha256:{ARTIFACT.hex} does not match pulled artifact digest sha256:{'00' * 32}"
    )


def test_every_signature_rule_is_registered_and_broken_here() -> None:
    signature_rules = {rule.id for rule in RULES.values() if rule.kind is RuleKind.SIGNATURE}
    registered = {check.rule for check in CHECKS}
    assert registered >= signature_rules - {"S17"}
    assert registered <= set(RULES)
    broken = {param.values[0] for param in REFUSED} | {"S11", "S18"}
    assert broken == signature_rules - {"S17"}


def test_each_rule_closes_a_hole_that_nothing_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the rule silent, engine and other rules accept at least one of its bundles.

    Not so for S3, since older formats carry a chain (S13), and for S6, since the engine counts too.
    """
    holes: set[str] = set()
    for param in REFUSED:
        rule, make = param.values
        assert isinstance(rule, str)
        assert callable(make)
        silent = tuple(check for check in CHECKS if check.rule != rule)
        monkeypatch.setattr("app.adapters.sigstore.rules.CHECKS", silent)
        if isinstance(judged(make()), VerifiedSignature):
            holes.add(rule)
    assert holes == {param.values[0] for param in REFUSED} - {"S3", "S6"}
