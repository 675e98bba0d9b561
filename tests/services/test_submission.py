"""From a pointer or a text to the reference that is fetched."""

import pytest

from app.core.errors import PointerInvalid, ReferenceInvalid
from app.services.submission import pinned_reference, reference_of_pointer

HEX = "ab" * 32


def pointer(oci: str, digest: str = f"sha256:{HEX}") -> bytes:
    return f"""schemaVersion: 1.0.0
recipe: h100-eks-ubuntu-training
attestations:
  - bundle:
      oci: "{oci}"
      digest: "{digest}"
      predicateType: https://aicr.run/recipe-evidence/v3
""".encode()


@pytest.mark.parametrize(
    "oci",
    [
        pytest.param("ghcr.io/octocat/evidence:tag", id="tag"),
        pytest.param("ghcr.io/octocat/evidence", id="bare"),
        pytest.param(f"oci://ghcr.io/octocat/evidence@sha256:{HEX}", id="pinned"),
        pytest.param(f"ghcr.io/octocat/evidence@sha256:{'cd' * 32}", id="pinned-elsewhere"),
    ],
)
def test_a_pointers_digest_wins(oci: str) -> None:
    assert str(reference_of_pointer(pointer(oci))) == f"ghcr.io/octocat/evidence@sha256:{HEX}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(pointer("", ""), "no bundle.oci", id="not-pushed"),
        pytest.param(pointer("ghcr.io/o/e", "sha256:short"), "64 lowercase hex", id="digest"),
        pytest.param(pointer("ghcr.io/UPPER/e"), "lower-case", id="repository"),
        pytest.param(b"[]", "not valid YAML", id="list"),
    ],
)
def test_a_pointer_that_leads_nowhere_is_invalid(text: bytes, message: str) -> None:
    with pytest.raises(PointerInvalid, match=message):
        reference_of_pointer(text)


def test_a_tag_alone_is_refused() -> None:
    assert str(pinned_reference(f"ghcr.io/o/e:tag@sha256:{HEX}")) == f"ghcr.io/o/e@sha256:{HEX}"
    with pytest.raises(ReferenceInvalid, match="expected a reference with a digest, got the tag 'latest'"):
        pinned_reference("ghcr.io/o/e:latest")
