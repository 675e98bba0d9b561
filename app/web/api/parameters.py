"""Path parameters that several resources share, with what they mean."""

from typing import Annotated

from fastapi import Path

from app.core.refs import Digest

EXAMPLE_DIGEST = "sha256:1f0c0ffee0000000000000000000000000000000000000000000000000000001"
EXAMPLE_SOURCE = "b0e01b470866f200af3b5cb4bcc303aa"
EXAMPLE_RECIPE = "h100-eks-ubuntu-training-kubeflow"

DigestPath = Annotated[str, Path(description="the OCI manifest digest", max_length=80, examples=[EXAMPLE_DIGEST])]
SourcePath = Annotated[
    str, Path(description="a source: 32 hex (slug) or 64 hex (canonical id)", max_length=64, examples=[EXAMPLE_SOURCE])
]
RecipePath = Annotated[str, Path(description="the recipe's name", max_length=512, examples=[EXAMPLE_RECIPE])]


def digest_of(text: str) -> Digest:
    """The digest of a path; raises `ReferenceInvalid`."""
    return Digest.parse(text)
