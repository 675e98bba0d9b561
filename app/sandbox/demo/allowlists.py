"""The demo's allowlist, before and after a signer is added."""

from collections.abc import Sequence

from app.sandbox.demo.samples import NEWCOMER, OCTOCAT_WORKFLOW
from app.sandbox.identities import DEV_TWO, OCTOCAT, PARTNER, SandboxIdentity

_FIRST_PARTY = "".join(
    f"  - label: aicr-{name}\n"
    "    issuer: https://token.actions.githubusercontent.com\n"
    f"    identityPattern: ^https://github\\.com/NVIDIA/aicr/\\.github/workflows/{name}\\.yaml@refs/heads/.+$\n"
    for name in ("uat-aws", "uat-gcp")
)


def allowlist(*, with_newcomer: bool = False) -> str:
    """An allowlist text; the newcomer is the signer that one edit adds."""
    community: list[tuple[str, SandboxIdentity]] = [
        ("octocat", OCTOCAT),
        ("octocat-attest", OCTOCAT_WORKFLOW),
        ("dev-two", DEV_TWO),
    ]
    if with_newcomer:
        community.append(("newcomer", NEWCOMER))
    return (
        "schemaVersion: 1.0.0\n"
        f"firstParty:\n{_FIRST_PARTY}"
        f"community:\n{_slugs(community)}"
        f"partner:\n{_slugs([('partner-lab', PARTNER)])}"
    )


def _slugs(entries: Sequence[tuple[str, SandboxIdentity]]) -> str:
    return "".join(
        f"  - label: {label}\n    issuer: {identity.issuer}\n    source: {identity.signer.slug}\n"
        for label, identity in entries
    )
