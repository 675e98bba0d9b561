"""What a certificate says about its signer: subject alternative names and Fulcio's extensions.

Numbers are the last arc below 1.3.6.1.4.1.57264.1 (Fulcio's oid-info table). Extensions 1 to 6 hold raw UTF-8, all
later ones a DER UTF8String.
"""

from collections.abc import Mapping

from app.sandbox.identities import GITHUB, SandboxIdentity, SanKind, WorkflowRun
from app.sandbox.sigstore import der

FULCIO_ARC = "1.3.6.1.4.1.57264.1"
ISSUER_RAW = 1
ISSUER = 8
LAST_RAW = 6

_SAN_TAGS = {SanKind.EMAIL: 1, SanKind.DNS: 2, SanKind.URI: 6}


def encode(number: int, value: str) -> bytes:
    """The value of one Fulcio extension in the encoding that its number asks for."""
    return value.encode() if number <= LAST_RAW else der.utf8(value)


def workflow_extensions(run: WorkflowRun) -> dict[int, str]:
    """The extensions of a GitHub Actions certificate, as public Fulcio derives them from the token."""
    repository = f"{GITHUB}/{run.repository}"
    return {
        2: run.event,
        3: run.sha,
        4: run.name,
        5: run.repository,
        6: run.ref,
        9: f"{GITHUB}/{run.job_workflow_ref}",
        10: run.job_workflow_sha,
        11: run.runner,
        12: repository,
        13: run.sha,
        14: run.ref,
        15: run.repository_id,
        16: f"{GITHUB}/{run.owner}",
        17: run.owner_id,
        18: f"{GITHUB}/{run.workflow_ref}",
        19: run.sha,
        20: run.event,
        21: run.run_url,
        22: run.visibility,
    }


def identity_extensions(identity: SandboxIdentity) -> dict[int, str]:
    """Issuer in both forms, and the run's facts for a workflow."""
    run = workflow_extensions(identity.run) if identity.run else {}
    return {ISSUER_RAW: identity.issuer, ISSUER: identity.issuer, **run}


def encoded(values: Mapping[int, str]) -> dict[str, bytes]:
    """Dotted OID -> extension bytes."""
    return {f"{FULCIO_ARC}.{number}": encode(number, value) for number, value in values.items()}


def general_names(names: tuple[tuple[SanKind, str], ...]) -> bytes:
    """A SubjectAltName value, unchecked: any text, also with control characters, goes in as it is."""
    return der.sequence(*(der.context(_SAN_TAGS[kind], text.encode(), constructed=False) for kind, text in names))
