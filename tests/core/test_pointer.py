"""Pointers: the ordered checks, strict YAML, the writer, and where a pointer belongs (evidence-format 6, 11.6)."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.cross_check import SignerClaim
from app.core.errors import ConflictError, InputError, PointerInvalid, ReferenceInvalid
from app.core.pointer import (
    MAX_POINTER_BYTES,
    Pointer,
    canonical_suffix,
    dump_pointer,
    parse_pointer,
    pointer_from_object,
    pull_reference,
    require_signable,
)

V1 = "https://aicr.run/recipe-evidence/v1"
V2 = "https://aicr.run/recipe-evidence/v2"
V3 = "https://aicr.run/recipe-evidence/v3"
HEX = "1f" * 32
OCTOCAT = SignerClaim("1234567+octocat@users.noreply.github.com", "https://github.com/login/oauth", 116117000)


def pointer_text(
    *,
    schema: str = "schemaVersion: 1.0.0",
    recipe: str = "recipe: h100-eks-ubuntu-training",
    profile: str = "",
    oci: str = "ghcr.io/owner/aicr-evidence:v1",
    digest: str = "sha256:abc",
    kind: str = V1,
    entry: str = "",
    entries: int = 1,
    end: str = "",
) -> bytes:
    attestation = f"  - bundle:\n      oci: {oci}\n      digest: {digest}\n      predicateType: {kind}\n{entry}"
    attestations = f"attestations:\n{attestation * entries}" if entries else "attestations: []\n"
    return f"{schema}\n{recipe}\n{profile}\n{attestations}{end}".encode()


SIGNED = "    signer:\n      identity: someone@example.org\n      issuer: https://issuer.example.org\n"
PROFILE = "profile: gpuStack=operator-managed"
SUFFIXED = "recipe: h100-aks-ubuntu-training-gpustack-operator-managed"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(pointer_text(), id="P0-unsigned"),
        pytest.param(pointer_text(entry=SIGNED), id="P0-signed"),
        pytest.param(pointer_text(kind=V2, profile=PROFILE, recipe=SUFFIXED), id="P8"),
        pytest.param(pointer_text(kind=V3), id="v3-without-profile"),
        pytest.param(pointer_text(kind=V3, profile=PROFILE, recipe=SUFFIXED), id="v3-with-profile"),
        pytest.param(pointer_text(schema="schemaVersion: 1.0"), id="schema-1.0"),
        pytest.param(pointer_text(oci='""', digest='""'), id="before-a-push"),
        pytest.param(pointer_text(entry="    signer:\n"), id="empty-signer-is-pending"),
        pytest.param(pointer_text(entry="    signer: {}\n"), id="signer-without-any-key-is-pending"),
        pytest.param(pointer_text(entry="    fingerprint: {a: b}\n    phaseSummary: [x]\n"), id="older-keys"),
    ],
)
def test_a_pointer_that_keeps_the_rules_is_accepted(data: bytes) -> None:
    assert parse_pointer(data).predicate_type in {V1, V2, V3}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(pointer_text(schema="schemaVersion: 2.0.0"), "unsupported pointer schemaVersion", id="P1"),
        pytest.param(pointer_text(recipe=""), "pointer.recipe is required", id="P2"),
        pytest.param(pointer_text(entries=0), "must have at least one entry", id="P3"),
        pytest.param(pointer_text(entries=2), "multiple entries", id="P4"),
        pytest.param(pointer_text(kind="wrong"), "unsupported predicateType", id="P5"),
        pytest.param(
            pointer_text(kind="https://aicr.nvidia.com/recipe-evidence/v1"),
            "unsupported predicateType",
            id="older-host",
        ),
        pytest.param(pointer_text(digest="no-prefix"), "must be sha256:<hex> when OCI is set", id="P6"),
        pytest.param(pointer_text(end="#" * MAX_POINTER_BYTES), "at most 1048576", id="P7"),
        pytest.param(pointer_text(profile=PROFILE, recipe=SUFFIXED), "profile-bearing recipes require", id="P9"),
        pytest.param(pointer_text(kind=V2), "without a profile selection", id="P10"),
        pytest.param(pointer_text(kind=V2, profile=PROFILE), "profile path segment", id="P11"),
        pytest.param(pointer_text(profile="profile: not-a-selection"), "name=value", id="P12"),
        pytest.param(
            pointer_text(entry="    signer: {identity: someone@example.org}\n"),
            "requires identity and issuer",
            id="signer-without-issuer",
        ),
        pytest.param(
            pointer_text(entry="    signer: {rekorLogIndex: 4}\n"),
            "requires identity and issuer",
            id="signer-without-both",
        ),
        pytest.param(b"recipe: [", "pointer file is not valid YAML", id="broken-yaml"),
        pytest.param(b"", "unsupported pointer schemaVersion", id="empty-file"),
        pytest.param(b"- a\n", "pointer file is not valid YAML", id="a-list"),
        pytest.param(pointer_text(end="recipe: again\n"), "pointer file is not valid YAML", id="duplicate-key"),
        pytest.param(pointer_text(end="a: &x b\nc: *x\n"), "pointer file is not valid YAML", id="alias"),
        pytest.param(pointer_text(end="a: !!int 3\n"), "pointer file is not valid YAML", id="tag"),
        pytest.param(pointer_text(end="---\nb: 1\n"), "pointer file is not valid YAML", id="second-document"),
        pytest.param(pointer_text(end="a: " + "[" * 70 + "]" * 70), "pointer file is not valid YAML", id="too-deep"),
        pytest.param(pointer_text(recipe="recipe: [a]"), "expected a text as recipe", id="recipe-is-a-list"),
        pytest.param(pointer_text(entry="    attestedAt: soon\n"), "expected a timestamp", id="time-is-a-word"),
        pytest.param(pointer_text(entry="    attestedAt: 2026-02-30\n"), "expected a timestamp", id="no-such-day"),
        pytest.param(
            pointer_text(entry=SIGNED + "      rekorLogIndex: -1\n"), "expected a whole number", id="negative-index"
        ),
        pytest.param(
            pointer_text(entry=SIGNED + "      rekorLogIndex: 0x10\n"), "expected a whole number", id="hex-index"
        ),
    ],
)
def test_the_first_check_that_fails_speaks(data: bytes, message: str) -> None:
    with pytest.raises(PointerInvalid) as caught:
        parse_pointer(data)
    assert message in caught.value.message


def test_the_schema_is_checked_before_the_recipe_and_that_before_the_attestations() -> None:
    with pytest.raises(PointerInvalid, match="schemaVersion"):
        parse_pointer(pointer_text(schema="", recipe="", entries=0))
    with pytest.raises(PointerInvalid, match="recipe is required"):
        parse_pointer(pointer_text(recipe="", entries=0, profile="profile: x"))
    with pytest.raises(PointerInvalid, match="name=value"):
        parse_pointer(pointer_text(entries=0, profile="profile: x"))


def test_scalars_are_text_and_an_index_of_zero_is_a_real_index() -> None:
    pointer = parse_pointer(pointer_text(recipe="recipe: 1.10", entry=SIGNED + "      rekorLogIndex: 0\n"))
    assert pointer.recipe == "1.10"
    assert pointer.signer == SignerClaim("someone@example.org", "https://issuer.example.org", 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("2026-05-08T10:23:11Z", datetime(2026, 5, 8, 10, 23, 11, tzinfo=UTC), id="utc"),
        pytest.param('"2026-05-08T10:23:11Z"', datetime(2026, 5, 8, 10, 23, 11, tzinfo=UTC), id="quoted"),
        pytest.param("2026-05-08T12:23:11+02:00", datetime(2026, 5, 8, 10, 23, 11, tzinfo=UTC), id="zone"),
        pytest.param("2026-05-08 10:23:11.5", datetime(2026, 5, 8, 10, 23, 11, 500000, tzinfo=UTC), id="space"),
        pytest.param("2026-05-08", datetime(2026, 5, 8, tzinfo=UTC), id="date"),
        pytest.param("~", None, id="null"),
    ],
)
def test_a_time_is_read_as_go_reads_yaml_timestamps(text: str, expected: datetime | None) -> None:
    assert parse_pointer(pointer_text(entry=f"    attestedAt: {text}\n")).attested_at == expected


def test_the_report_shows_the_pointer_with_the_keys_of_the_schema() -> None:
    pointer = parse_pointer(
        pointer_text(entry=SIGNED + "      rekorLogIndex: 7\n    attestedAt: 2026-05-08T10:23:11Z\n")
    )
    assert pointer.to_json() == {
        "schemaVersion": "1.0.0",
        "recipe": "h100-eks-ubuntu-training",
        "attestations": [
            {
                "bundle": {"oci": "ghcr.io/owner/aicr-evidence:v1", "digest": "sha256:abc", "predicateType": V1},
                "signer": {
                    "identity": "someone@example.org",
                    "issuer": "https://issuer.example.org",
                    "rekorLogIndex": 7,
                },
                "attestedAt": "2026-05-08T10:23:11Z",
            }
        ],
    }


def test_a_pointer_that_came_as_json_is_the_same_pointer() -> None:
    pointer = parse_pointer(
        pointer_text(entry=SIGNED + "      rekorLogIndex: 7\n    attestedAt: 2026-05-08T10:23:11Z\n")
    )
    assert pointer_from_object(pointer.to_json()) == pointer


@pytest.mark.parametrize(
    "value",
    [
        pytest.param([], id="list"),
        pytest.param("text", id="text"),
        pytest.param(3, id="number"),
        pytest.param({"schemaVersion": 1.0}, id="schema-as-number"),
        pytest.param({"schemaVersion": "1.0", "recipe": "r", "attestations": {}}, id="attestations-as-object"),
        pytest.param({"schemaVersion": "1.0", "recipe": "r", "attestations": [3]}, id="attestation-as-number"),
    ],
)
def test_an_object_of_another_shape_is_refused(value: object) -> None:
    with pytest.raises(PointerInvalid):
        pointer_from_object(value)


@pytest.mark.parametrize("index", [True, -1, 1 << 63, 1.5, "x", []])
def test_an_index_that_is_no_whole_number_is_refused(index: object) -> None:
    signer = {"identity": "a@example.org", "issuer": "https://i.example.org", "rekorLogIndex": index}
    bundle = {"oci": "", "digest": "", "predicateType": V1}
    with pytest.raises(PointerInvalid, match="whole number"):
        pointer_from_object(
            {"schemaVersion": "1.0", "recipe": "r", "attestations": [{"bundle": bundle, "signer": signer}]}
        )


SAMPLE = Pointer(
    recipe="h100-aks-ubuntu-training-gpustack-operator-managed",
    predicate_type=V3,
    oci="ghcr.io/octocat/aicr-evidence:h100-aks-ubuntu-training-gpustack-operator-managed-0123456789ab",
    digest=f"sha256:{HEX}",
    profile="gpuStack=operator-managed",
    signer=OCTOCAT,
    attested_at=datetime(2026, 5, 8, 10, 23, 11, tzinfo=UTC),
)


def test_the_writer_sorts_keys_and_indents_by_two() -> None:
    assert dump_pointer(SAMPLE).decode() == (
        "attestations:\n"
        "  - attestedAt: 2026-05-08T10:23:11Z\n"
        "    bundle:\n"
        f"      digest: sha256:{HEX}\n"
        "      oci: ghcr.io/octocat/aicr-evidence:h100-aks-ubuntu-training-gpustack-operator-managed-0123456789ab\n"
        "      predicateType: https://aicr.run/recipe-evidence/v3\n"
        "    signer:\n"
        "      identity: 1234567+octocat@users.noreply.github.com\n"
        "      issuer: https://github.com/login/oauth\n"
        "      rekorLogIndex: 116117000\n"
        "profile: gpuStack=operator-managed\n"
        "recipe: h100-aks-ubuntu-training-gpustack-operator-managed\n"
        "schemaVersion: 1.0.0\n"
    )


def test_the_writers_list_items_are_indented_by_two_not_four() -> None:
    """P13."""
    text = dump_pointer(Pointer(recipe="r", predicate_type=V1)).decode()
    assert "attestations:\n  - " in text
    assert "\n    - " not in text


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


@settings(deadline=None)
@given(
    texts=st.tuples(ANY_TEXT, ANY_TEXT, ANY_TEXT, ANY_TEXT),
    index=st.none() | st.integers(0, (1 << 63) - 1),
    attested=st.none() | st.datetimes(timezones=st.just(UTC)),
)
def test_what_is_written_reads_back_as_the_same_pointer(
    texts: tuple[str, str, str, str], index: int | None, attested: datetime | None
) -> None:
    recipe, oci, identity, issuer = texts
    pointer = Pointer(
        recipe=recipe,
        predicate_type=V3,
        oci=oci,
        digest=f"sha256:{HEX}",
        signer=SignerClaim(identity, issuer, index),
        attested_at=attested,
    )
    assert parse_pointer(dump_pointer(pointer)) == pointer


@settings(deadline=None)
@given(st.binary(max_size=400) | st.text(max_size=200).map(str.encode))
def test_no_bytes_make_the_reader_raise_anything_else(data: bytes) -> None:
    try:
        parse_pointer(data)
    except PointerInvalid:
        return
    raise AssertionError("random bytes were read as a pointer")


# --- relocation and signing --------------------------------------------------------------------------


def signed_pointer(recipe: str = "r", digest: str = f"sha256:{HEX}") -> Pointer:
    return Pointer(recipe=recipe, predicate_type=V3, digest=digest, signer=OCTOCAT)


def test_the_canonical_place_is_recipe_source_and_digest() -> None:
    assert canonical_suffix(signed_pointer()) == f"r/6a07962adbca2d3f377d8c67f2584e71/sha256-{HEX}.yaml"


@pytest.mark.parametrize(
    "pointer",
    [
        pytest.param(signed_pointer(digest="sha256:../../etc/evil"), id="R1-traversal"),
        pytest.param(signed_pointer(digest="sha256:a/b"), id="R1-slash"),
        pytest.param(signed_pointer(digest="sha256:.."), id="R1-dots"),
        pytest.param(signed_pointer(digest="sha256:abc"), id="R2-short"),
        pytest.param(signed_pointer(digest=f"sha256:{'a' * 63}"), id="R2-63"),
        pytest.param(signed_pointer(digest=f"sha256:{'a' * 65}"), id="R2-65"),
        pytest.param(signed_pointer(digest=f"sha256:nothex{'z' * 58}"), id="R2-not-hex"),
        pytest.param(signed_pointer(digest=f"sha256:{'A' * 64}"), id="upper-case"),
        pytest.param(signed_pointer(digest=f"md5:{'a' * 64}"), id="R3"),
        pytest.param(signed_pointer(recipe="../../etc/evil"), id="R4-traversal"),
        pytest.param(signed_pointer(recipe="/abs/evil"), id="R4-absolute"),
        pytest.param(signed_pointer(recipe=".."), id="R4-dots"),
        pytest.param(signed_pointer(recipe="a\0b"), id="nul"),
        pytest.param(Pointer(recipe="r", predicate_type=V3, digest=f"sha256:{HEX}"), id="R5-unsigned"),
        pytest.param(signed_pointer(digest=""), id="R5-no-digest"),
    ],
)
def test_a_pointer_that_could_leave_the_tree_has_no_place(pointer: Pointer) -> None:
    with pytest.raises(InputError):
        canonical_suffix(pointer)


def test_only_an_unsigned_pointer_to_a_pushed_bundle_can_be_signed() -> None:
    pushed = Pointer(recipe="r", predicate_type=V3, oci="ghcr.io/a/b:v1", digest=f"sha256:{HEX}")
    require_signable(pushed)
    with pytest.raises(ConflictError):
        require_signable(signed_pointer())
    with pytest.raises(PointerInvalid):
        require_signable(Pointer(recipe="r", predicate_type=V3))


# --- what to pull ------------------------------------------------------------------------------------


def test_the_pointers_digest_pins_whatever_its_reference_names() -> None:
    """O8."""
    digest = f"sha256:{HEX}"
    for oci in (
        "ghcr.io/owner/aicr-evidence:v1",
        "ghcr.io/owner/aicr-evidence",
        f"ghcr.io/owner/aicr-evidence@{digest}",
    ):
        pointer = Pointer(recipe="r", predicate_type=V3, oci=oci, digest=digest)
        assert str(pull_reference(pointer)) == f"ghcr.io/owner/aicr-evidence@{digest}"


def test_a_registry_port_is_no_tag() -> None:
    pointer = Pointer(recipe="r", predicate_type=V3, oci="localhost:5000/repo", digest=f"sha256:{HEX}")
    assert str(pull_reference(pointer)) == f"localhost:5000/repo@sha256:{HEX}"


def test_a_pointer_without_a_reference_needs_one_from_the_caller() -> None:
    """O9: without a digest the reference stays as it is."""
    unpushed = Pointer(recipe="r", predicate_type=V3)
    with pytest.raises(PointerInvalid, match="no reference"):
        pull_reference(unpushed)
    with pytest.raises(ReferenceInvalid, match="tag-only"):
        pull_reference(unpushed, "ghcr.io/a/b:v1")
    assert str(pull_reference(unpushed, "ghcr.io/a/b:v1", allow_unpinned_tag=True)) == "ghcr.io/a/b:v1"
    pinned = Pointer(recipe="r", predicate_type=V3, digest=f"sha256:{HEX}")
    assert str(pull_reference(pinned, "ghcr.io/a/b:v1")) == f"ghcr.io/a/b@sha256:{HEX}"
