"""Builders of `core.bundle.Run`, allowlists and recipe inputs for tests of the pure core.

Everything has a default, so that a test names only what it is about. Times are given in days before `NOW`.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from app.core.allowlist import Allowlist
from app.core.bundle import DimensionMatch, Figure, LogEntry, Run, TestOutcome
from app.core.catalogue import CatalogueVersion
from app.core.coordinate import Criteria, coordinate_of, profile_segment, recipe_slug
from app.core.corroborate import corroborate
from app.core.identity import GITHUB_ACTIONS_ISSUER, GITHUB_OAUTH_ISSUER, GithubClaims, SignerIdentity
from app.core.refs import Digest
from app.core.verdict import ConfirmBy, ConfirmRule, RecipeInputs, RecipeVerdict, Row

NOW = datetime(2026, 6, 20, 12, 0, tzinfo=UTC)
GHA = GITHUB_ACTIONS_ISSUER
GHO = GITHUB_OAUTH_ISSUER
V1 = "https://aicr.run/recipe-evidence/v1"
V2 = "https://aicr.run/recipe-evidence/v2"
V3 = "https://aicr.run/recipe-evidence/v3"

CRITERIA = Criteria(service="eks", accelerator="h100", os="ubuntu", intent="training", platform="kubeflow")
RECIPE = "h100-eks-ubuntu-training-kubeflow"
TODAY = hashlib.sha256(b"today").hexdigest()
OLDER = hashlib.sha256(b"older").hexdigest()
LEGACY = hashlib.sha256(b"legacy").hexdigest()

CHECK = ("deployment", "operator-health")

WORKFLOW = "https://github.com/NVIDIA/aicr/.github/workflows/uat-aws.yaml"
PATTERN = r"^https://github\.com/NVIDIA/aicr/\.github/workflows/uat-aws\.yaml@refs/.+$"


def hex_of(*parts: object) -> str:
    """A digest that stands for `parts`."""
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()


def person(name: str, issuer: str = GHO) -> SignerIdentity:
    """Somebody with an e-mail identity."""
    return SignerIdentity(issuer, f"{name}@example.org")


def workflow(ref: str = "refs/heads/main", path: str = WORKFLOW, claims: GithubClaims | None = None) -> SignerIdentity:
    """A GitHub workflow at a ref."""
    return SignerIdentity(GHA, f"{path}@{ref}", claims or GithubClaims())


def make_run(
    signer: SignerIdentity,
    results: Mapping[tuple[str, str], str] | str = "passed",
    *,
    days: float = 1,
    logged_days: float | None = None,
    index: int = 7,
    version: str = "v1.0.0",
    commit: str = "",
    digest: str = "",
    recipe_digest: str = TODAY,
    predicate_type: str = V3,
    criteria: Criteria = CRITERIA,
    selection: str = "",
    recipe: str = "",
    prints: Iterable[tuple[str, str]] = (),
    hardware_matched: bool = True,
    weightless: str = "",
    public: bool = True,
    remarks: Sequence[str] = (),
    overridden: Sequence[str] = (),
    images: Sequence[str] = (),
    figures: Sequence[Figure] = (),
    skip_reason: str = "",
    recipe_text: str = "",
    k8s: str = "1.33",
) -> Run:
    """A run whose results are one status for `CHECK`, or statuses by (phase, name)."""
    statuses = {CHECK: results} if isinstance(results, str) else dict(results)
    attested = NOW - timedelta(days=days)
    logged = NOW - timedelta(days=days if logged_days is None else logged_days) + timedelta(minutes=2)
    segment = profile_segment(selection) if selection else ""
    name = digest or hex_of(signer.issuer, signer.identity, attested, version, commit, sorted(statuses.items()))
    return Run(
        digest=Digest(name),
        signer=signer,
        recipe=recipe or recipe_slug(criteria, segment),
        criteria=criteria,
        coordinate=coordinate_of(criteria, segment),
        profile=segment,
        profile_selection=selection,
        predicate_type=predicate_type,
        recipe_digest=recipe_digest,
        aicr_version=version,
        aicr_commit=commit,
        k8s_version=k8s,
        k8s_constraint="",
        attested_at=attested,
        logged_at=logged,
        received_at=NOW,
        log=LogEntry("log.example.org", "00" * 32, index, index, "dsse"),
        root="sandbox",
        root_sha256="11" * 32,
        signature_sha256=hex_of("signature", name),
        exit=1 if "failed" in statuses.values() else 0,
        phases=(),
        results=tuple(
            TestOutcome(phase, test, status, skip_reason=skip_reason if status == "skipped" else "")
            for (phase, test), status in statuses.items()
        ),
        prints=tuple(prints),
        dimensions=()
        if hardware_matched
        else (DimensionMatch("accelerator", "mismatched", requires="h100", provides="a100"),),
        hardware_matched=hardware_matched,
        weightless=weightless,
        public=public,
        remarks=tuple(remarks),
        overridden_paths=tuple(overridden),
        validator_images=tuple(images),
        figures=tuple(figures),
        recipe_text=recipe_text,
    )


def allowlist_text(
    *people: SignerIdentity, patterns: Sequence[str] = (), labels: Mapping[str, str] | None = None
) -> str:
    """An allowlist with `people` as community slugs and `patterns` as first-party workflows of GitHub."""
    lines = ["schemaVersion: 1.0.0"]
    if patterns:
        lines.append("firstParty:")
        for pattern in patterns:
            lines += [f"  - issuer: {GHA}", f"    identityPattern: '{pattern}'"]
    if people:
        lines.append("community:")
        for signer in people:
            lines += [f"  - issuer: {signer.issuer}", f"    source: '{signer.slug}'"]
            if labels and signer.slug in labels:
                lines.append(f"    label: {labels[signer.slug]}")
    return "\n".join(lines) + "\n"


def listing(*people: SignerIdentity, patterns: Sequence[str] = ()) -> Allowlist:
    """The loaded list of `allowlist_text`."""
    return Allowlist.load(allowlist_text(*people, patterns=patterns).encode())


def version(
    content_only: str = TODAY,
    *,
    legacy: str = LEGACY,
    declared: Iterable[tuple[str, str]] | None = None,
    floors: Mapping[str, str] | None = None,
    text: str = "",
    retired: bool = False,
    criteria: Criteria | None = None,
    selection: str = "",
    recipe: str = RECIPE,
) -> CatalogueVersion:
    """One catalogue version."""
    return CatalogueVersion(
        recipe=recipe,
        legacy=legacy,
        content_only=content_only,
        recorded_at=NOW - timedelta(days=10),
        commit="0123456",
        declared=None if declared is None else tuple(declared),
        floors=dict(floors or {}),
        text=text,
        retired=retired,
        criteria=criteria,
        profile_selection=selection,
    )


def verdict_of(
    runs: Iterable[Run],
    *listed: SignerIdentity,
    patterns: Sequence[str] = (),
    recipe: str = RECIPE,
    catalogue: Sequence[CatalogueVersion] = (),
    by: ConfirmBy = ConfirmBy.SIGNER,
    threshold: int = 2,
    now: datetime = NOW,
    earlier: Sequence[Allowlist] = (),
    **inputs: object,
) -> RecipeVerdict:
    """The verdict on `runs` when `listed` and `patterns` are on the list."""
    return corroborate(
        RecipeInputs(recipe, tuple(runs), tuple(catalogue), **inputs),  # type: ignore[arg-type]
        allowlist=listing(*listed, patterns=patterns),
        rule=ConfirmRule(by, threshold),
        now=now,
        earlier=earlier,
    )


def row_of(verdict: RecipeVerdict, check: tuple[str, str] = CHECK) -> Row:
    """One row of the combined grid."""
    return next(row for row in verdict.combined.rows if (row.phase, row.name) == check)
