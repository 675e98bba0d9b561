"""What a manifest, a referrer and an index must say, one altered field at a time."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.adapters.oci import ReaderLimits, describe_bundle, describe_signature
from app.adapters.oci.manifest import (
    Descriptor,
    parse_index,
    parse_main,
    parse_signature,
    signature_entries,
)
from app.adapters.oci.pack import describe_index
from app.core.errors import FetchError

LIMITS = ReaderLimits()
BUNDLE = describe_bundle({"recipe.yaml": b"a\n"}, predicate_type="https://aicr.run/recipe-evidence/v3", version="v1")
SIGNATURE = describe_signature(BUNDLE.descriptor, b"{}")

Change = Callable[[dict[str, Any]], object]


def altered(manifest: bytes, change: Change) -> bytes:
    document = copy.deepcopy(json.loads(manifest))
    change(document)
    return json.dumps(document).encode()


def test_a_described_bundle_is_read() -> None:
    main = parse_main(BUNDLE.manifest, LIMITS)

    assert (main.layer.digest, main.layer.size) == (BUNDLE.layer_digest, len(BUNDLE.layer))
    assert main.tar_digest == BUNDLE.tar_digest


def test_a_layer_without_annotations_is_read() -> None:
    """A tolerant reader unpacks the single layer whatever its annotations say (evidence-format 5.2)."""
    data = altered(BUNDLE.manifest, lambda d: d["layers"][0].pop("annotations"))

    assert parse_main(data, LIMITS).tar_digest is None


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda d: d.update(schemaVersion=1), id="schema-version"),
        pytest.param(lambda d: d.update(schemaVersion="2"), id="schema-version-text"),
        pytest.param(lambda d: d.pop("schemaVersion"), id="no-schema-version"),
        pytest.param(lambda d: d.update(mediaType="application/vnd.oci.image.index.v1+json"), id="index"),
        pytest.param(lambda d: d.pop("mediaType"), id="no-media-type"),
        pytest.param(lambda d: d.update(artifactType="application/x"), id="artifact-type"),
        pytest.param(lambda d: d.pop("artifactType"), id="no-artifact-type"),
        pytest.param(lambda d: d["config"].update(size=3), id="config-size"),
        pytest.param(lambda d: d["config"].update(mediaType="application/json"), id="config-type"),
        pytest.param(lambda d: d["config"].update(digest="sha256:" + "0" * 64), id="config-digest"),
        pytest.param(lambda d: d.pop("config"), id="no-config"),
        pytest.param(lambda d: d.update(layers=[]), id="no-layer"),
        pytest.param(lambda d: d["layers"].append(d["layers"][0]), id="two-layers"),
        pytest.param(lambda d: d.update(layers={"0": 1}), id="layers-object"),
        pytest.param(lambda d: d["layers"][0].update(mediaType="application/x-tar"), id="layer-type"),
        pytest.param(lambda d: d["layers"][0].update(digest="sha512:" + "0" * 128), id="layer-sha512"),
        pytest.param(lambda d: d["layers"][0].update(digest="sha256:../../x"), id="layer-digest-path"),
        pytest.param(lambda d: d["layers"][0].update(digest=5), id="layer-digest-number"),
        pytest.param(lambda d: d["layers"][0].update(size=-1), id="layer-negative"),
        pytest.param(lambda d: d["layers"][0].update(size=True), id="layer-size-bool"),
        pytest.param(lambda d: d["layers"][0].update(size=1.5), id="layer-size-float"),
        pytest.param(lambda d: d["layers"][0].update(size="12"), id="layer-size-text"),
        pytest.param(lambda d: d["layers"][0].update(annotations=["x"]), id="annotations-list"),
        pytest.param(lambda d: d["layers"][0].update(annotations={"x": 1}), id="annotations-number"),
        pytest.param(
            lambda d: d["layers"][0]["annotations"].update({"io.deis.oras.content.digest": "md5:x"}), id="tar-digest"
        ),
        pytest.param(lambda d: d["layers"][0].update(Digest="sha256:" + "0" * 64), id="case-variant-digest"),
        pytest.param(lambda d: d.update(MediaType="x"), id="case-variant-media-type"),
    ],
)
def test_an_altered_manifest_is_refused(change: Change) -> None:
    with pytest.raises(FetchError) as caught:
        parse_main(altered(BUNDLE.manifest, change), LIMITS)

    assert (caught.value.code, caught.value.retryable) == ("MANIFEST_INVALID", False)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"[]", id="list"),
        pytest.param(b"\xff\xfe", id="not-utf8"),
        pytest.param(b'\xef\xbb\xbf{"a":1}', id="byte-order-mark"),
        pytest.param(b'{"a":NaN}', id="nan"),
        pytest.param(b"[" * 100_000, id="deep"),
        pytest.param(BUNDLE.manifest + b"{}", id="two-documents"),
        pytest.param(BUNDLE.manifest[:-1] + b',"layers":[]}', id="duplicate-key"),
    ],
)
def test_what_is_not_strict_json_is_refused(data: bytes) -> None:
    with pytest.raises(FetchError) as caught:
        parse_main(data, LIMITS)

    assert caught.value.code == "MANIFEST_INVALID"


def test_a_layer_over_the_cap_is_told_apart() -> None:
    data = altered(BUNDLE.manifest, lambda d: d["layers"][0].update(size=(64 << 20) + 1))

    with pytest.raises(FetchError) as caught:
        parse_main(data, LIMITS)

    assert caught.value.code == "BODY_TOO_LARGE"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param(lambda d: d.update(artifactType="application/x"), "REFERRER_INVALID", id="artifact-type"),
        pytest.param(lambda d: d.pop("subject"), "REFERRER_INVALID", id="no-subject"),
        pytest.param(
            lambda d: d["subject"].update(digest="sha256:" + "0" * 64), "REFERRER_INVALID", id="other-subject"
        ),
        pytest.param(lambda d: d["subject"].update(size=1), "REFERRER_INVALID", id="subject-size"),
        pytest.param(
            lambda d: d["subject"].update(mediaType="application/x"), "REFERRER_INVALID", id="subject-media-type"
        ),
        pytest.param(lambda d: d["subject"].update(Digest="x"), "MANIFEST_INVALID", id="case-variant"),
        pytest.param(lambda d: d.update(layers=d["layers"] * 2), "MANIFEST_INVALID", id="two-layers"),
        pytest.param(lambda d: d.update(layers=[]), "MANIFEST_INVALID", id="no-layer"),
        pytest.param(lambda d: d["layers"][0].update(size=(10 << 20) + 1), "BODY_TOO_LARGE", id="oversize"),
        pytest.param(lambda d: d.update(mediaType="x"), "MANIFEST_INVALID", id="media-type"),
    ],
)
def test_an_altered_referrer_is_refused(change: Change, code: str) -> None:
    with pytest.raises(FetchError) as caught:
        parse_signature(altered(SIGNATURE.manifest, change), subject=BUNDLE.descriptor, limits=LIMITS)

    assert caught.value.code == code


def test_a_described_referrer_is_read() -> None:
    layer = parse_signature(SIGNATURE.manifest, subject=BUNDLE.descriptor, limits=LIMITS).layer

    assert (layer.digest, layer.size) == (SIGNATURE.content_digest, 2)


def test_an_index_is_read_in_order_and_null_is_empty() -> None:
    entries = (SIGNATURE.descriptor, BUNDLE.descriptor)
    null = b'{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":null}'

    assert [entry.digest for entry in parse_index(describe_index(entries), LIMITS)] == [
        SIGNATURE.digest,
        BUNDLE.digest,
    ]
    assert parse_index(null, LIMITS) == ()


def test_other_referrers_are_filtered_out_here_too() -> None:
    other = Descriptor(BUNDLE.descriptor.media_type, BUNDLE.digest, 5, "application/spdx+json")
    unnamed = Descriptor(BUNDLE.descriptor.media_type, BUNDLE.digest, 5)

    found = signature_entries((other, SIGNATURE.descriptor, unnamed, SIGNATURE.descriptor), LIMITS)

    assert found == (SIGNATURE.descriptor,)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.sampled_from(["config", "layers", "subject", "annotations", "mediaType", "artifactType"]), _JSON)
def test_any_value_in_any_field_is_a_manifest_or_a_refusal(key: str, value: object) -> None:
    for manifest in (BUNDLE.manifest, SIGNATURE.manifest):
        data = json.dumps({**json.loads(manifest), key: value}).encode()
        for parse in (
            lambda d: parse_main(d, LIMITS),
            lambda d: parse_signature(d, subject=BUNDLE.descriptor, limits=LIMITS),
            lambda d: parse_index(d, LIMITS),
        ):
            try:
                parse(data)
            except FetchError as err:
                assert err.code in {"MANIFEST_INVALID", "REFERRER_INVALID", "BODY_TOO_LARGE"}  # noqa: PT017
