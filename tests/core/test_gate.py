"""The trusted-registry gate: vectors T01-T10, normal forms, and what is said to a refused caller."""

import pytest

from app.core.errors import RegistryNotTrusted
from app.core.gate import TrustedRegistries, can_admit
from app.core.refs import OciRef

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("setting", "reference", "admitted"),
    [
        pytest.param("ghcr.io/nvidia", f"ghcr.io/nvidia/aicr-evidence@{DIGEST}", True, id="T01"),
        pytest.param("ghcr.io/nvidia", f"ghcr.io/nvidia/aicr-evidence:v1@{DIGEST}", True, id="T02"),
        pytest.param("ghcr.io/nvidia", f"ghcr.io/nvidia@{DIGEST}", True, id="T03-equal"),
        pytest.param("ghcr.io/nvidia", f"ghcr.io/nvidia-evil/x@{DIGEST}", False, id="T04-common-prefix"),
        pytest.param("ghcr.io/nvidia", f"ghcr.io/NVIDIA/x@{DIGEST}", False, id="T05-path-case"),
        pytest.param("ghcr.io/nvidia", "evil.example/ghcr.io/nvidia/x", False, id="T06-inside-the-path"),
        pytest.param("localhost:5000", "localhost:5000/x:t", True, id="T07-port"),
        pytest.param(" ghcr.io/a , ,ghcr.io/b/c ", "ghcr.io/b/c/d", True, id="T08-list"),
        pytest.param("", f"ghcr.io/nvidia/x@{DIGEST}", False, id="T09-empty"),
        pytest.param("ghcr.io/nvidia/", "ghcr.io/nvidia/x", False, id="T10-trailing-slash"),
        pytest.param("ghcr.io/nvidia", f"GHCR.IO/nvidia/x@{DIGEST}", True, id="host-case"),
        pytest.param("ghcr.io/nvidia", f"ghcr.io:443/nvidia/x@{DIGEST}", True, id="default-port"),
        pytest.param("ghcr.io:443/nvidia", f"ghcr.io/nvidia/x@{DIGEST}", True, id="default-port-in-the-setting"),
        pytest.param("ghcr.io/nvidia", f"ghcr.io./nvidia/x@{DIGEST}", True, id="trailing-dot"),
        pytest.param("ghcr.io/nvidia", f"ghcr.io.:443/nvidia/x@{DIGEST}", True, id="trailing-dot-and-port"),
        pytest.param("ghcr.io/nvidia", f"ghcr.io:8443/nvidia/x@{DIGEST}", False, id="other-port"),
        pytest.param("ghcr.io/nvidia", f"ghcr.io:80/nvidia/x@{DIGEST}", False, id="http-port-is-not-the-default"),
        pytest.param("ghcr.io/nvidia", "ghcr.io/nvidia/../evil/x", False, id="parent-segment"),
        pytest.param("ghcr.io/nvidia", "ghcr.io/nvidia/./x", False, id="dot-segment"),
        pytest.param("ghcr.io/nvidia", "ghcr.io/nvidia//x", False, id="empty-segment"),
        pytest.param("ghcr.io/nvidia", "ghcr.io@evil.example/nvidia/x", False, id="user-part"),
        pytest.param("ghcr.io", "ghcr.io.evil.example/x:t", False, id="host-prefix"),
        pytest.param("[::1]:5000", "[::1]:5000/x:t", True, id="ipv6"),
        pytest.param("ghcr.io/*", "ghcr.io/x:t", False, id="no-wildcards"),
        pytest.param(" , ,", "ghcr.io/x:t", False, id="only-separators"),
    ],
)
def test_a_reference_is_admitted_by_whole_segments_under_a_listed_prefix(
    setting: str, reference: str, *, admitted: bool
) -> None:
    assert TrustedRegistries.parse(setting).admits_text(reference) is admitted


def test_a_parsed_reference_is_judged_like_its_text() -> None:
    gate = TrustedRegistries.parse("ghcr.io/nvidia")

    assert gate.admits(OciRef.parse(f"oci://ghcr.io/nvidia/aicr-evidence:v1@{DIGEST}"))
    assert not gate.admits(OciRef.parse(f"ghcr.io/nvidia-evil/x@{DIGEST}"))


def test_a_refusal_gives_the_setting_line_that_admits_the_reference() -> None:
    gate = TrustedRegistries.parse("ghcr.io/nvidia,ghcr.io/partner")
    ref = OciRef.parse(f"GHCR.io:443/octocat/evidence@{DIGEST}")

    with pytest.raises(RegistryNotTrusted) as caught:
        gate.require(ref)

    line = "AICR_EVIDENCE_TRUSTED_REGISTRIES=ghcr.io/nvidia,ghcr.io/partner,ghcr.io/octocat/evidence"
    assert caught.value.code == "REGISTRY_NOT_TRUSTED"
    assert caught.value.details["setting"] == line
    assert line in caught.value.hint
    assert TrustedRegistries.parse(line.partition("=")[2]).admits(ref)


def test_an_admitted_reference_passes_in_silence() -> None:
    assert TrustedRegistries.parse("ghcr.io").require(OciRef.parse("ghcr.io/a/b:t")) is None


@pytest.mark.parametrize(
    ("prefix", "can"),
    [
        pytest.param("ghcr.io/nvidia", True, id="plain"),
        pytest.param("GHCR.IO./nvidia/a_b", True, id="host-in-another-form"),
        pytest.param("registry:5000", True, id="host-and-port"),
        pytest.param("[::1]:5000/x", True, id="ipv6"),
        pytest.param("[::1]", True, id="ipv6-without-port"),
        pytest.param("https://ghcr.io/nvidia", False, id="url"),
        pytest.param("a b", False, id="space"),
        pytest.param("h/../x", False, id="parent-segment"),
        pytest.param("ghcr.io/nvidia/", False, id="trailing-slash"),
        pytest.param("ghcr.io/NVIDIA", False, id="path-that-no-reference-has"),
        pytest.param("ghcr.io/nvidia@sha256", False, id="reference"),
        pytest.param("ghcr.io/*", False, id="wildcard"),
        pytest.param("registry:0", False, id="port-0"),
        pytest.param("[::1]:65536", False, id="no-port"),
        pytest.param("index.docker.io/x", False, id="other-name-of-docker-io"),
        pytest.param("/x", False, id="no-host"),
    ],
)
def test_a_prefix_that_no_reference_begins_with_admits_nothing(prefix: str, *, can: bool) -> None:
    assert can_admit(prefix) is can
