"""Who signs in the sandbox: sample identities, none of them a real person or a real run.

An identity says what its certificate will claim; nothing here signs. The workflow identity carries the facts of one
simulated GitHub Actions run, from which `sigstore.oidc` makes token claims and `sigstore.extensions` certificate
extensions, so that both roads end in the same certificate.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from app.core.identity import GITHUB_ACTIONS_ISSUER, GITHUB_OAUTH_ISSUER, GithubClaims, SignerIdentity

GITHUB: Final = "https://github.com"
PARTNER_ISSUER: Final = "https://oidc.partner-lab.example"
STRANGER_ISSUER: Final = "https://login.stranger.example"
UPSTREAM_REPOSITORY: Final = "NVIDIA/aicr"


class SanKind(StrEnum):
    """The two kinds of subject alternative name that Fulcio issues for keyless signers, and one that it does not."""

    EMAIL = "email"
    URI = "uri"
    DNS = "dns"


@dataclass(frozen=True, slots=True)
class WorkflowRun:
    """One simulated run of a GitHub Actions workflow: the claims that Fulcio turns into extensions."""

    repository: str  # owner/name whose workflow was triggered
    workflow: str  # path of the triggered workflow
    ref: str = "refs/heads/main"
    event: str = "schedule"
    sha: str = "5d582e1f1749c0ffee00000000000000000a1c71"
    repository_id: str = "880011223"
    owner_id: str = "1728152"
    run_id: str = "7000000001"
    attempt: str = "1"
    name: str = "validation"
    visibility: str = "public"
    runner: str = "github-hosted"
    called: str = ""  # owner/name/path@ref of a reusable workflow that signs instead of the triggered one
    called_sha: str = ""

    @property
    def owner(self) -> str:
        """The account that owns the repository."""
        return self.repository.partition("/")[0]

    @property
    def workflow_ref(self) -> str:
        """What was triggered, as GitHub's `workflow_ref` claim writes it."""
        return f"{self.repository}/{self.workflow}@{self.ref}"

    @property
    def job_workflow_ref(self) -> str:
        """What runs the job, and so what the certificate names (differs for reusable workflows, S18)."""
        return self.called or self.workflow_ref

    @property
    def job_workflow_sha(self) -> str:
        """The commit of what runs the job."""
        return self.called_sha or self.sha

    @property
    def run_url(self) -> str:
        """Where the run would be seen."""
        return f"{GITHUB}/{self.repository}/actions/runs/{self.run_id}/attempts/{self.attempt}"


@dataclass(frozen=True, slots=True)
class SandboxIdentity:
    """A sample signer: issuer and subject as its certificate shows them, with its run if it is a workflow."""

    issuer: str
    kind: SanKind
    value: str
    run: WorkflowRun | None = None

    @property
    def signer(self) -> SignerIdentity:
        """What a verifier should read back from the certificate."""
        run = self.run
        if run is None:
            return SignerIdentity(self.issuer, self.value)
        return SignerIdentity(
            self.issuer,
            self.value,
            GithubClaims(
                trigger=run.event,
                source_repository=f"{GITHUB}/{run.repository}",
                source_repository_id=run.repository_id,
                source_owner=f"{GITHUB}/{run.owner}",
                source_owner_id=run.owner_id,
                run_url=run.run_url,
                source_ref=run.ref,
            ),
        )


def workflow_identity(run: WorkflowRun) -> SandboxIdentity:
    """The identity that Fulcio gives to a job of `run`."""
    return SandboxIdentity(GITHUB_ACTIONS_ISSUER, SanKind.URI, f"{GITHUB}/{run.job_workflow_ref}", run)


def upstream_workflow(
    file: str = "uat-aws.yaml", ref: str = "refs/heads/main", *, event: str = "schedule"
) -> SandboxIdentity:
    """A workflow of the upstream repository at `ref`; `file` as in its `.github/workflows`."""
    return workflow_identity(WorkflowRun(UPSTREAM_REPOSITORY, f".github/workflows/{file}", ref, event))


def email_identity(address: str, issuer: str = GITHUB_OAUTH_ISSUER) -> SandboxIdentity:
    """A person who signed in with an e-mail address."""
    return SandboxIdentity(issuer, SanKind.EMAIL, address)


def caller_of(identity: SandboxIdentity, repository: str) -> SandboxIdentity:
    """The same certificate subject, made by a run of `repository` that calls the workflow as a reusable one (S18)."""
    if identity.run is None:
        raise ValueError("expected a workflow identity, found one without a run")
    return workflow_identity(
        replace(
            identity.run,
            repository=repository,
            workflow=".github/workflows/borrow.yaml",
            repository_id="990099009",
            owner_id="55555",
            called=identity.run.job_workflow_ref,
            called_sha=identity.run.job_workflow_sha,
        )
    )


UAT_AWS: Final = upstream_workflow("uat-aws.yaml")
UAT_GCP: Final = upstream_workflow("uat-gcp.yaml")
UAT_AWS_BRANCH: Final = upstream_workflow("uat-aws.yaml", "refs/heads/feature/x", event="workflow_dispatch")
OCTOCAT: Final = email_identity("1234567+octocat@users.noreply.github.com")
DEV_TWO: Final = email_identity("dev-two@example.org")
PARTNER: Final = SandboxIdentity(PARTNER_ISSUER, SanKind.URI, f"{PARTNER_ISSUER}/attest")
STRANGER: Final = email_identity("somebody@stranger.example", STRANGER_ISSUER)

SAMPLE_SIGNERS: Final[dict[str, SandboxIdentity]] = {
    "uat-aws": UAT_AWS,
    "uat-gcp": UAT_GCP,
    "uat-aws-branch": UAT_AWS_BRANCH,
    "octocat": OCTOCAT,
    "dev-two": DEV_TWO,
    "partner": PARTNER,
    "stranger": STRANGER,
}
"""The signers that the token endpoint knows, by name."""
