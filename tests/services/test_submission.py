"""From what a caller names to what is fetched (evidence-format 5.4)."""

import pytest

from app.core.errors import PointerInvalid, ReferenceInvalid
from app.core.pointer import Pointer, dump_pointer
from app.services.submission import pinned_reference, reference_of_pointer

DIGEST, OTHER = f"sha256:{'ab' * 32}", f"sha256:{'cd' * 32}"
V3 = "https://aicr.run/recipe-evidence/v3"


def pointer(oci: str, digest: str = DIGEST) -> bytes:
    return dump_pointer(Pointer("h100-eks-ubuntu-training", V3, oci=oci, digest=digest))


@pytest.mark.parametrize(
    "oci",
    [
        pytest.param("ghcr.io/octocat/evidence", id="bare"),
        pytest.param("ghcr.io/octocat/evidence:v1", id="tag"),
        pytest.param(f"ghcr.io/octocat/evidence@{DIGEST}", id="same-digest"),
        pytest.param(f"ghcr.io/octocat/evidence@{OTHER}", id="other-digest"),
        pytest.param(f"ghcr.io/octocat/evidence:v1@{OTHER}", id="tag-and-other-digest"),
        pytest.param("oci://ghcr.io/octocat/evidence:v1", id="scheme"),
    ],
)
def test_only_registry_and_repository_are_taken_from_a_pointers_reference(oci: str) -> None:
    assert str(reference_of_pointer(pointer(oci))) == f"ghcr.io/octocat/evidence@{DIGEST}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(dump_pointer(Pointer("h100", V3)), "no bundle.oci", id="not-pushed"),
        pytest.param(pointer("ghcr.io/octocat/evidence", "sha256:short"), "pointer bundle: ", id="no-digest"),
        pytest.param(pointer("ghcr.io/../evidence"), "pointer bundle: ", id="no-reference"),
        pytest.param(b"{", "not valid YAML", id="no-pointer"),
    ],
)
def test_a_pointer_that_leads_nowhere_is_refused(text: bytes, said: str) -> None:
    with pytest.raises(PointerInvalid, match=said):
        reference_of_pointer(text)


def test_a_reference_needs_a_digest() -> None:
    assert str(pinned_reference(f"ghcr.io/octocat/evidence:v1@{DIGEST}")) == f"ghcr.io/octocat/evidence@{DIGEST}"
    with pytest.raises(ReferenceInvalid, match="got the tag 'v1'") as caught:
        pinned_reference("ghcr.io/octocat/evidence:v1")
    assert "a tag can move" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("host", "spelling"),
    [
        pytest.param("GHCR.io", "ghcr.io", id="case"),
        pytest.param("ghcr.io.", "ghcr.io", id="trailing-dot"),
        pytest.param("GHCR.IO.:443", "ghcr.io:443", id="port"),
        pytest.param("Localhost.:5000", "localhost:5000", id="private"),
        pytest.param("[2001:DB8::1]:5000", "[2001:db8::1]:5000", id="address-and-port"),
        pytest.param("[2001:DB8::1]", "[2001:db8::1]", id="address"),
    ],
)
def test_a_host_is_submitted_in_one_spelling(host: str, spelling: str) -> None:
    expected = f"{spelling}/octocat/evidence@{DIGEST}"
    assert str(pinned_reference(f"{host}/octocat/evidence@{DIGEST}")) == expected
    assert str(reference_of_pointer(pointer(f"{host}/octocat/evidence"))) == expected
