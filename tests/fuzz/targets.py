"""What a stranger's bytes reach first, each as one function that raises nothing but errors of the service.

Used by the hypothesis tests beside this module and by `tools/fuzz.py` (atheris). A target that needs a choice takes
it from the first byte, so that every input is bytes and can be kept as a file. Seeds lie in `corpus/<target>/`.
"""

import hashlib
import json
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError

from app.adapters.oci.addresses import split_host
from app.adapters.oci.auth import read_challenge, read_token
from app.adapters.oci.layout_tar import read_layout_tar
from app.adapters.oci.limits import ReaderLimits
from app.adapters.oci.manifest import Descriptor, parse_index, parse_main, parse_signature, signature_entries
from app.adapters.oci.reader import _NEXT_LINK, _retry_after
from app.adapters.oci.tar import ByteStream, read_tar
from app.adapters.oci.transport import Url
from app.adapters.oci.unpack import inflate
from app.adapters.sigstore.roots import TrustRoots, load_root
from app.adapters.sigstore.verifier import SigstoreVerifier
from app.core.allowlist import Allowlist
from app.core.answer import answer
from app.core.asked import asked_by_document
from app.core.bundle import CAPTURED_LIMITS, Content, Entry, EntryKind, Pins, RawSignature, SignatureRefused
from app.core.canonical import ParsedRecipe
from app.core.coordinate import coordinate_of
from app.core.criteria_match import match_criteria
from app.core.ctrf import parse_report
from app.core.documents import Predicate
from app.core.errors import ServiceError
from app.core.gate import TrustedRegistries
from app.core.input_form import PathKind, detect_input
from app.core.inventory import local_path, parse_manifest
from app.core.jsontext import parse_json
from app.core.pins import compile_pins
from app.core.pointer import canonical_suffix, dump_pointer, parse_pointer, pointer_from_object, pull_reference
from app.core.recipe import Recipe
from app.core.refs import Digest, OciRef
from app.core.report import InputKind
from app.core.statement import check_coherence, read_statement, require_subject_digest
from app.core.yamltext import load_text
from app.ports import JudgeJob
from app.services.catalogue import version_of
from app.services.judge import UNEXPECTED, JudgeService
from app.services.submission import pinned_reference, reference_of_pointer
from app.web.bodies import BulkBody, CatalogueBody, SubmissionBody, parse_body
from app.web.cursors import decode_number, decode_text
from app.web.queries import AnswerQuery, AttemptsQuery, EvidenceQuery, LensQuery, RecipesQuery
from tests.support.bundles import Sample, manifest_of, profiled, sha256, statement_of
from tests.support.signatures import ARTIFACT, NOW
from tests.support.verifiers import DIGEST, RECEIVED_AT, FakeVerifier, signed

CORPUS = Path(__file__).parent / "corpus"
ROOT = Path(__file__).parent / "trusted_root.json"
LIMITS = ReaderLimits(unpacked_bytes=1 << 20, ratio_floor_bytes=64 << 10, files=64)
"""Smaller than in the service, so that the limits are reached too."""


@dataclass(frozen=True, slots=True)
class Target:
    """One entry point; `main` targets get the most time."""

    name: str
    call: Callable[[bytes], object]
    main: bool = False

    def run(self, data: bytes) -> None:
        """Feed `data`; whatever leaves this but an error of the service is a fault."""
        with suppress(ServiceError):
            self.call(data)

    def seeds(self) -> tuple[bytes, ...]:
        """The committed inputs, in the order of their names."""
        return tuple(path.read_bytes() for path in sorted((CORPUS / self.name).iterdir()))


# --- signatures and statements -----------------------------------------------------------------------


def sigstore_bundle(data: bytes) -> None:
    """A Sigstore bundle, to its verdict; the rules must speak themselves."""
    judge = _verifier()
    for verdict in (
        judge.verify(data, artifact=ARTIFACT, pins=Pins(), now=NOW),
        judge.verify_signature_only(data, pins=Pins()),
    ):
        if isinstance(verdict, SignatureRefused):
            assert verdict.code, verdict


@cache
def _verifier() -> SigstoreVerifier:
    """Trusts the root that the seeds were signed under, so that a mutation starts from a bundle that verifies."""
    root = load_root("fuzz", ROOT.read_bytes(), issuers=None, reserved=frozenset())
    return SigstoreVerifier(TrustRoots((root,)))


def statement(data: bytes) -> None:
    """A statement, its coherence and its predicate."""
    found = read_statement(data)
    with suppress(ServiceError):
        require_subject_digest(found)
    with suppress(ServiceError):
        check_coherence(found.predicate_type, found.predicate)
    _predicate(found.predicate)


def predicate(data: bytes) -> None:
    """A predicate alone."""
    document = parse_json(data)
    if isinstance(document, dict):
        _predicate(document)


def _predicate(body: Mapping[str, Any]) -> None:
    read = Predicate.read(body)
    assert read.phase_summaries is not None
    recipe = Recipe.parse(Sample().recipe)
    if recipe.criteria is not None:
        match_criteria(recipe.criteria, read.fingerprint)


# --- a whole bundle -----------------------------------------------------------------------------------

_JUDGED_FILES = (
    "recipe.yaml",
    "manifest.json",
    "statement.intoto.json",
    "bom.cdx.json",
    "ctrf/deployment.json",
    "ctrf/performance.json",
    "ctrf/conformance.json",
    "attestation.intoto.jsonl",
)


@dataclass(frozen=True)
class _InMemory:
    """A content reader over a dictionary."""

    files: Mapping[str, bytes]

    def read(self, _directory: str, /) -> Content:
        entries = {
            path: Entry(path, EntryKind.FILE, len(data), hashlib.sha256(data).hexdigest())
            for path, data in self.files.items()
        }
        return Content(entries, {path: self.files[path] for path in CAPTURED_LIMITS if path in self.files})


@cache
def _bundles() -> tuple[tuple[Sample, dict[str, bytes]], ...]:
    return tuple((sample, sample.files()) for sample in (Sample(), profiled()))


def judged_bundle(data: bytes) -> None:
    """One file of a good bundle replaced; with the second bit the manifest and the predicate follow."""
    head, body = data[:1], data[1:]
    choice = head[0] if head else 0
    sample, good = _bundles()[choice >> 7]
    path = _JUDGED_FILES[choice % len(_JUDGED_FILES)]
    files = good | {path: body}
    if choice & 0x40:
        files = _fitted(sample, files)
    signatures: dict[bytes, Any] = {}
    with suppress(ServiceError):
        found = read_statement(files["statement.intoto.json"])
        signatures[b"s"] = signed(found.predicate, found.predicate_type)
    for attached in ((), (RawSignature(b"s"),)):
        job = JudgeJob(
            directory="",
            input=InputKind.OCI,
            received_at=RECEIVED_AT,
            digest=DIGEST,
            signatures=attached,
            strict=bool(choice & 0x20),
        )
        verdict = JudgeService(_InMemory(files), FakeVerifier(signatures)).judge(job)
        assert getattr(verdict, "code", "") != UNEXPECTED, verdict
        assert json.dumps(verdict.report.to_json())


def _fitted(sample: Sample, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The bundle with a manifest and a predicate that describe its files, whatever they hold."""
    listed = {path: data for path, data in files.items() if path in sample.body()}
    manifest = manifest_of(listed)
    body = sample.predicate_of(sample.body(), manifest)
    for phase, counts in body["phases"].items():  # type: ignore[attr-defined]
        counts["ctrfDigest"] = f"sha256:{sha256(listed[f'ctrf/{phase}.json'])}"
    with suppress(ServiceError):
        recipe = Recipe.parse(listed["recipe.yaml"])
        digest = ParsedRecipe.parse(listed["recipe.yaml"]).digest(sample.predicate_type)
        body["recipe"] = {"name": recipe.name, "digest": digest}
    statement_bytes = statement_of(body, sample.predicate_type, f"recipe:{sample.name}", "0" * 64)
    return {**files, "manifest.json": manifest, "statement.intoto.json": statement_bytes}


def recipe(data: bytes) -> None:
    """A recipe: both digests, its name, its place; a canonical text that parses has canonical digests."""
    parsed = ParsedRecipe.parse(data)
    digests = []
    for digest in (parsed.legacy_digest, parsed.content_digest):
        with suppress(ServiceError):
            digests.append(digest())
    assert all(len(digest) == 64 for digest in digests)
    with suppress(ServiceError):
        decoded = Recipe.decode(parsed)
        coordinate_of(decoded.criteria, decoded.profile_segment)


def ctrf(data: bytes) -> None:
    """A phase report."""
    for phase in ("deployment", "performance"):
        found = parse_report(phase, data)
        assert all(count >= 0 for count in found.counted().values())


def manifest_json(data: bytes) -> None:
    """The bundle's own manifest."""
    for file in parse_manifest(data):
        local = local_path(file.path)
        assert local is None or ".." not in local.split("/")


# --- pointers, references, allowlists ----------------------------------------------------------------


def pointer_yaml(data: bytes) -> None:
    """A pointer file; what is written again reads as the same."""
    pointer = parse_pointer(data)
    assert parse_pointer(dump_pointer(pointer)) == pointer
    _pointer(pointer)


def pointer_object(data: bytes) -> None:
    """A pointer as a JSON object, by the two ways in which one comes in."""
    with suppress(ServiceError):
        _pointer(pointer_from_object(parse_json(data)))
    reference_of_pointer(data)


def _pointer(pointer: Any) -> None:
    assert json.dumps(pointer.to_json())
    with suppress(ServiceError):
        suffix = canonical_suffix(pointer)
        assert not suffix.startswith("/")
        assert ".." not in suffix.split("/")
    pull_reference(pointer)


def reference(data: bytes) -> None:
    """A reference, the gate, the form of an input."""
    text = data.decode("utf-8", "surrogateescape")
    with suppress(ServiceError):
        Digest.parse(text)
    with suppress(ServiceError):
        detect_input(text, kind_of_path=lambda _: PathKind.MISSING)
    with suppress(ServiceError):
        pinned_reference(text)
    gate = TrustedRegistries.parse("ghcr.io/nvidia,localhost:5000")
    gate.admits_text(text)
    ref = OciRef.parse(text)
    assert OciRef.parse(str(ref)) == ref
    gate.admits(ref)


def trusted_registries(data: bytes) -> None:
    """First line: the setting; second: a reference. What is admitted lies below an entry."""
    setting, _, text = data.decode("utf-8", "replace").partition("\n")
    TrustedRegistries.parse(setting).admits(OciRef.parse(text))


def allowlist(data: bytes) -> None:
    """An allowlist as it comes in a pull request; classification of anybody under it."""
    loaded = Allowlist.load(data)
    for issuer, identity in (("https://github.com/login/oauth", "a@example.org"), ("", ""), ("x", "\n@")):
        loaded.classify(issuer, identity)


def pin(data: bytes) -> None:
    """An identity pin, searched in a long identity."""
    text = data.decode("utf-8", "replace")
    compile_pins(Pins(identity_regexp=text)).fault("https://github.com/login/oauth", "a" * 4096 + "@example.org!")


# --- what a registry answers -------------------------------------------------------------------------

_SUBJECT = Descriptor("application/vnd.oci.image.manifest.v1+json", ARTIFACT, 100)


def oci_json(data: bytes) -> None:
    """A manifest, a referrer manifest or an index."""
    with suppress(ServiceError):
        parse_main(data, LIMITS)
    with suppress(ServiceError):
        parse_signature(data, subject=_SUBJECT, limits=LIMITS)
    signature_entries(parse_index(data, LIMITS), LIMITS)


def tar(data: bytes) -> None:
    """An uncompressed layer; every path that comes out is safe."""
    _drain(iter([data]))


def layer(data: bytes) -> None:
    """A compressed layer, or with an odd first byte the tar that is compressed for it."""
    body = data[1:]
    if data[:1] and data[0] & 1:
        engine = zlib.compressobj(wbits=31)
        body = engine.compress(body) + engine.flush()
    _drain(inflate(iter([body]), hashlib.sha256(), len(body), LIMITS))


def _drain(chunks: Iterator[bytes]) -> None:
    total = 0
    for entry in read_tar(ByteStream(chunks), LIMITS):
        assert not entry.path.startswith("/")
        assert not {"", ".", ".."} & set(entry.path.split("/"))
        if not entry.directory:
            total += sum(map(len, entry.chunks()))
    assert total <= LIMITS.unpacked_bytes + LIMITS.ratio_floor_bytes


def layout_tar(data: bytes) -> None:
    """An archive tar from a file."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "in.tar")
        path.write_bytes(data)
        with read_layout_tar(str(path), scratch, LIMITS) as pulled:
            assert pulled.artifact.digest


def headers(data: bytes) -> None:
    """Header values: a challenge with its realm, a redirect, a link, a pause."""
    text = data.decode("latin-1")
    lines = text.split("\n")
    challenge = read_challenge(lines)
    if challenge is not None:
        Url.parse(challenge.realm)
    base = Url.parse("https://registry.example.org/v2/a/b/referrers/x")
    assert base is not None
    for line in lines:
        pause = _retry_after(line)
        assert pause is None or pause >= 0
        for wanted in (line, *_NEXT_LINK.findall(line[:8192])):
            url = base.join(wanted)
            assert url is None or Url.parse(str(url)) is not None
        with suppress(ServiceError):
            split_host(line)


def token(data: bytes) -> None:
    """A token server's answer."""
    text, seconds = read_token(data)
    assert text.isascii()
    assert 0 < seconds <= 3600


# --- what is posted ----------------------------------------------------------------------------------


def snapshot(data: bytes) -> None:
    """A fingerprint or a snapshot, to its answer."""
    document = load_text(data, max_bytes=1 << 20)
    answer(asked_by_document(document, {}), ())


def bodies(data: bytes) -> None:
    """JSON bodies of submissions and of the catalogue."""
    with suppress(ServiceError):
        submission = parse_body(SubmissionBody, data)
        if isinstance(submission.bundle, str):
            pinned_reference(submission.bundle)
    with suppress(ServiceError):
        version_of(parse_body(CatalogueBody, data).entry("h100-eks-ubuntu-training"), NOW)
    for entry in parse_body(BulkBody, data).entries():
        version_of(entry, NOW)


def query(data: bytes) -> None:
    """Query parameters of every list, as the framework hands them over; cursors too."""
    text = data.decode("utf-8", "replace")
    values = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=None))
    models: tuple[type[BaseModel], ...] = (EvidenceQuery, RecipesQuery, LensQuery, AttemptsQuery, AnswerQuery)
    for model in models:
        with suppress(ValidationError, ServiceError):
            found = model.model_validate(values)
            if isinstance(found, EvidenceQuery | RecipesQuery):
                found.where()
    for kind in ("records", "recipes", "attempts"):
        with suppress(ServiceError):
            decode_number(kind, text)
        with suppress(ServiceError):
            decode_text(kind, text)


def text(data: bytes) -> None:
    """The two readers below all others."""
    with suppress(ServiceError):
        load_text(data)
    parse_json(data)


TARGETS: Mapping[str, Target] = {
    target.name: target
    for target in (
        Target("bundle", sigstore_bundle, main=True),
        Target("pointer", pointer_yaml, main=True),
        Target("tar", tar, main=True),
        Target("reference", reference, main=True),
        Target("statement", statement),
        Target("predicate", predicate),
        Target("judge", judged_bundle),
        Target("recipe", recipe),
        Target("ctrf", ctrf),
        Target("manifest", manifest_json),
        Target("pointer-object", pointer_object),
        Target("gate", trusted_registries),
        Target("allowlist", allowlist),
        Target("pin", pin),
        Target("oci-json", oci_json),
        Target("layer", layer),
        Target("layout-tar", layout_tar),
        Target("headers", headers),
        Target("token", token),
        Target("snapshot", snapshot),
        Target("bodies", bodies),
        Target("query", query),
        Target("text", text),
    )
}
"""Every target by name."""
