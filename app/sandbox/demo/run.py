"""The main job from end to end over the real parts: publish, submit over HTTP, and compare what the API says.

Everything is made below one directory and ends with the process; nothing but loopback is used.
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

from app.adapters.oci.publishing import OciPublisher
from app.adapters.oci.writer import Writer
from app.adapters.sigstore.signing import SigningTrust, sign_statement
from app.client import ApiClient, JsonObject, Refusal
from app.core.refs import OciRef
from app.sandbox.demo.allowlists import allowlist
from app.sandbox.demo.recipes import CHECKS, EARLIER, RECIPES
from app.sandbox.demo.samples import AICR_VERSION, FORGED, SAMPLES, UNSIGNED, Sample, build_bundle, forge
from app.sandbox.demo.service import ServiceProcess
from app.sandbox.registry import SandboxRegistry
from app.sandbox.sigstore.server import SigstoreServer
from app.services.publish import publish

REPOSITORY = "aicr/evidence"
_EDIT_SECONDS = 10.0

Say = Callable[[str], None]


@dataclass(slots=True)
class Outcome:
    """What the API said, in the words of `expected.json`."""

    lines: list[dict[str, Any]] = field(default_factory=list)
    details: dict[str, dict[str, Any]] = field(default_factory=dict)
    refused: dict[str, Refusal] = field(default_factory=dict)
    edited: dict[str, Any] = field(default_factory=dict)
    edit_seconds: float = 0.0
    answer: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Demo:
    """A running demo: where its service listens, where its files are, and what came out."""

    url: str
    directory: Path
    registry: str
    example: str  # a stored bundle's reference
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Workshop:
    """Makes samples into pushed artifacts, honest and otherwise."""

    sigstore: SigstoreServer
    publisher: OciPublisher
    registry: str
    root: Path

    def publish(self, sample: Sample, now: datetime) -> OciRef:
        """Build, sign and push; the pinned reference."""
        bundle = build_bundle(sample, now)
        ref = OciRef(self.registry, REPOSITORY, tag=sample.name)
        if sample.fault == UNSIGNED:
            return self._push(bundle.files, ref, bundle.predicate_type)
        config = "signing_config.v1.json" if sample.rekor == "v1" else "signing_config.json"
        trust = SigningTrust.from_files(self.root / "trusted_root.json", self.root / config)
        token = self.sigstore.token(sample.signer)
        published = publish(
            bundle,
            ref,
            version=AICR_VERSION,
            registry=self.publisher,
            sign=lambda statement: sign_statement(statement, token=token, trust=trust),
        )
        if sample.fault == FORGED:
            return self._push(forge(bundle), ref, bundle.predicate_type, signature=published.signature)
        return published.ref

    def _push(
        self, files: Mapping[str, bytes], ref: OciRef, predicate_type: str, *, signature: bytes | None = None
    ) -> OciRef:
        packed = self.publisher.pack(files, predicate_type=predicate_type, version=AICR_VERSION)
        self.publisher.push(packed, ref)
        if signature is not None:
            self.publisher.attach(packed, ref, signature)
        return ref.at(packed.digest)


def expected() -> dict[str, Any]:
    """The verdicts that the samples must come to."""
    text = resources.files("app.sandbox.demo").joinpath("expected.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@contextmanager
def running(
    *, directory: Path | None = None, port: int = 0, leave_out: Iterable[str] = (), say: Say = lambda _: None
) -> Iterator[Demo]:
    """Start everything, submit every sample but those of `leave_out`, and keep it up while the context lasts.

    `directory` is empty or new.
    """
    left_out = frozenset(leave_out)
    with ExitStack() as stack:
        root = directory or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="aicr-demo-")))
        root.mkdir(parents=True, exist_ok=True)
        root = root.resolve()
        sigstore = stack.enter_context(SigstoreServer())
        sigstore.write(root)
        registry = stack.enter_context(SandboxRegistry())
        listed = root / "allowlist.yaml"
        listed.write_text(allowlist(), encoding="utf-8")
        say(f"a private Sigstore listens on {sigstore.url}, a registry on {registry.host}")
        service = stack.enter_context(
            ServiceProcess(
                root, registry=registry.host, allowlist=listed, trusted_root=root / "trusted_root.json", port=port
            )
        )
        say(f"the service listens on {service.url}")
        api = stack.enter_context(ApiClient(service.url, 60, token=service.catalogue_token))
        outcome = Outcome()
        samples = [sample for sample in SAMPLES if sample.name not in left_out]
        _push_catalogue(api, earlier=True)
        workshop = Workshop(sigstore, OciPublisher(Writer(plain_http_hosts=(registry.host,))), registry.host, root)
        example = _submit_all(api, samples, workshop, outcome, say)
        _push_catalogue(api, earlier=False)
        outcome.lines = [dict(line) for line in api.recipes()]
        wanted = expected()
        for name in (*wanted["remarks"], wanted["difference"]["recipe"], wanted["oneSigner"]["recipe"]):
            if any(line["recipe"] == name for line in outcome.lines):
                outcome.details[name] = dict(api.recipe(name))
        _edit_allowlist(api, listed, outcome)
        outcome.answer = dict(api.answer(**expected()["answer"]["asked"]))
        yield Demo(service.url, root, registry.host, example, outcome)


def differences(outcome: Outcome) -> list[str]:
    """Every way in which the outcome is not the expected one; empty when the demo is right."""
    wanted = expected()
    difference, answer, refused = wanted["difference"], wanted["answer"], wanted["refused"]
    one = wanted["oneSigner"]
    lines = " ".join(stale_lines(outcome.details.get(difference["recipe"], {})))
    nearest: dict[str, Any] = next(iter(outcome.answer.get("nearest", [])), {})
    got = {str(line["recipe"]): line for line in outcome.lines}
    compared: list[tuple[str, object, object]] = [
        *((name, want, _verdict(got.get(name))) for name, want in wanted["recipes"].items()),
        *((name, None, _verdict(line)) for name, line in got.items() if name not in wanted["recipes"]),
        *((f"refusal of {name}", want, _refusal(outcome.refused.get(name))) for name, want in refused.items()),
        *(
            (f"remark {code} on {name}", True, code in _remarks(outcome.details.get(name, {})))
            for name, code in wanted["remarks"].items()
        ),
        ("who speaks for one workflow", one["speaks"], speaking_ref(outcome.details.get(one["recipe"], {}))),
        *((f"difference in {part} of {difference['recipe']}", True, part in lines) for part in difference["lines"]),
        ("after the allowlist edit", wanted["afterAllowlistEdit"]["state"], outcome.edited.get("state")),
        ("nearest recipe", answer["nearest"], nearest.get("recipe")),
        ("what it differs in", answer["differs"], [each["dimension"] for each in nearest.get("differs", [])]),
    ]
    return [f"{what}: expected {want}, got {have}" for what, want, have in compared if want != have]


def _verdict(line: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return {key: line[key] for key in ("state", "currentState", "sources", "staleness")} if line else None


def _refusal(refusal: Refusal | None) -> dict[str, str] | None:
    return {"step": refusal.step, "code": refusal.code} if refusal else None


def stale_lines(recipe: Mapping[str, Any]) -> list[str]:
    """Every staleness message of a recipe's sources, with the difference behind it."""
    return [
        line
        for source in recipe.get("sources", [])
        for reason in source["staleness"]
        for line in (reason["message"], *reason["difference"])
    ]


def speaking_ref(recipe: Mapping[str, Any]) -> str | None:
    """The ref whose run is taken where several refs of one workflow signed; None where nobody is silenced."""
    sources = recipe.get("sources", [])
    silent = {source["signerKey"] for source in sources if not source["speaks"]}
    taken = [source["identity"] for source in sources if source["speaks"] and source["signerKey"] in silent]
    return str(taken[0]).rpartition("@")[2] if taken else None


def _remarks(recipe: Mapping[str, Any]) -> set[str]:
    own = {remark["code"] for remark in recipe.get("remarks", [])}
    return own | {remark["code"] for source in recipe.get("sources", []) for remark in source["remarks"]}


def _push_catalogue(api: ApiClient, *, earlier: bool) -> None:
    """The catalogue as it was when the evidence was made, or as it is today."""
    recipes = RECIPES | (EARLIER if earlier else {})
    commit = "1111111111111111111111111111111111111111" if earlier else "2222222222222222222222222222222222222222"
    declared = {phase: list(checks) for phase, checks in CHECKS.items()}
    entries: list[JsonObject] = [{"recipe": recipe.text.decode(), "declared": declared} for recipe in recipes.values()]
    api.put_catalogue(entries, commit=commit, ref="main")


def _submit_all(api: ApiClient, samples: list[Sample], workshop: Workshop, outcome: Outcome, say: Say) -> str:
    """Publish and submit each sample in turn; refusals are kept. Returns the first stored reference."""
    now = datetime.now(UTC)  # noqa: TID251 - the sandbox may read the clock
    example = ""
    for sample in samples:
        ref = workshop.publish(sample, now)
        answer = api.submit(bundle=str(ref))
        if isinstance(answer, Refusal):
            outcome.refused[sample.name] = answer
            say(f"  refused  {sample.name}: {answer.code}: {answer.cause.get('detail', '')}")
        else:
            example = example or str(ref)
            say(f"  stored   {sample.name}: {answer.body['recipe']}")
    return example


def _edit_allowlist(api: ApiClient, path: Path, outcome: Outcome) -> None:
    """Add one signer to the file and wait until the verdict follows."""
    recipe, state = expected()["afterAllowlistEdit"]["recipe"], expected()["afterAllowlistEdit"]["state"]
    if not any(line["recipe"] == recipe for line in outcome.lines):
        return
    started = time.monotonic()
    path.write_text(allowlist(with_newcomer=True), encoding="utf-8")
    while True:
        outcome.edited = dict(api.recipe(recipe))
        outcome.edit_seconds = time.monotonic() - started
        if outcome.edited["state"] == state or outcome.edit_seconds > _EDIT_SECONDS:
            return
        time.sleep(0.02)
