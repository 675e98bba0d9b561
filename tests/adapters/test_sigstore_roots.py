"""Which roots are in force, and which settings are refused because one root could impersonate another's signers."""

import hashlib
import json
from pathlib import Path

import pytest

from app.adapters.sigstore.roots import PUBLIC_GOOD_ISSUERS, RootSpec, TrustRoots, load_root, public_good_bytes
from app.adapters.sigstore.verifier import SigstoreVerifier
from app.core.errors import InputError
from app.sandbox.sigstore import PrivateSigstore, Window, Windows
from tests.support.signatures import AT, accepted, minted, private_root, refused, sigstore

PARTNER = "https://login.partner.example"
OTHER = "https://login.other.example"


@pytest.fixture
def root_file(tmp_path: Path) -> Path:
    path = tmp_path / "lab.json"
    path.write_bytes(sigstore().trusted_root_json())
    return path


@pytest.fixture
def other_file(tmp_path: Path) -> Path:
    path = tmp_path / "other" / "lab.json"
    path.parent.mkdir()
    path.write_bytes(PrivateSigstore(host="other.example").trusted_root_json())
    return path


def test_the_word_names_the_embedded_root() -> None:
    (root,) = TrustRoots.from_setting("public-good").roots
    assert (root.name, root.issuers) == ("public-good", None)
    assert sorted(log.name for log in root.logs.values()) == ["log2025-1.rekor.sigstore.dev", "rekor.sigstore.dev"]
    assert root.speaks_for("https://anybody.example")


def test_the_embedded_root_needs_no_user_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    assert TrustRoots.from_setting("public-good").public_good
    assert list(tmp_path.iterdir()) == []


def test_one_private_root_needs_no_limit(root_file: Path) -> None:
    (root,) = TrustRoots.from_setting(str(root_file)).roots
    assert (root.name, root.issuers) == ("lab", None)
    assert root.speaks_for("https://token.actions.githubusercontent.com")


def test_each_issuer_belongs_to_one_root(root_file: Path) -> None:
    public, lab = TrustRoots.from_setting(f"public-good, {root_file};issuer={PARTNER};issuer={OTHER}").roots
    assert lab.issuers == {PARTNER, OTHER}
    assert [public.speaks_for(issuer) for issuer in (PARTNER, OTHER, "https://accounts.google.com")] == [
        False,
        False,
        True,
    ]
    assert [lab.speaks_for(issuer) for issuer in (PARTNER, OTHER, "https://accounts.google.com")] == [True, True, False]


@pytest.mark.parametrize("issuer", sorted(PUBLIC_GOOD_ISSUERS))
def test_no_private_root_takes_a_public_issuer_from_the_public_root(root_file: Path, issuer: str) -> None:
    with pytest.raises(InputError, match="belongs to two trusted roots"):
        TrustRoots.from_setting(f"public-good,{root_file};issuer={issuer}")
    limited = TrustRoots.from_setting(f"public-good;issuer={PARTNER},{root_file};issuer={issuer}")
    assert [root.speaks_for(issuer) for root in limited.roots] == [False, True]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        pytest.param("", "expected a trusted root", id="empty"),
        pytest.param("public-good,", "expected a trusted root", id="empty item"),
        pytest.param("public-good,{root}", "limited to no issuer", id="unlimited private root beside another"),
        pytest.param("{root};issuer=https://a.example,{other}", "limited to no issuer", id="unlimited second root"),
        pytest.param(
            "{root};issuer=https://a.example,{other};issuer=https://a.example",
            "belongs to two trusted roots",
            id="one issuer in two roots",
        ),
        pytest.param(
            "{root};issuer=https://a.example,{root};issuer=https://b.example",
            "the same root twice",
            id="one root twice",
        ),
        pytest.param("{root};issuers=https://a.example", "expected issuer=URL", id="unknown key"),
        pytest.param("{root};issuer=", "expected issuer=URL", id="empty issuer"),
        pytest.param("{root};issuer=a.example", "expected an issuer's URL", id="issuer without scheme"),
        pytest.param("{root};issuer=https://a.example/ b", "expected an issuer's URL", id="issuer with blank"),
        pytest.param("{root}.missing", "expected a readable trusted root", id="no file"),
    ],
)
def test_a_setting_that_can_not_hold_is_refused(setting: str, message: str, root_file: Path, other_file: Path) -> None:
    with pytest.raises(InputError, match=message):
        TrustRoots.from_setting(setting.format(root=root_file, other=other_file))


def test_roots_that_a_person_names_need_no_limit(root_file: Path, other_file: Path) -> None:
    roots = TrustRoots.from_files([str(root_file), str(other_file), str(root_file)]).roots
    assert [root.issuers for root in roots] == [None, None]
    assert len({root.name for root in roots}) == 2
    assert all(root.name.startswith("lab-") and root.name == root.description["name"] for root in roots)
    with pytest.raises(InputError, match="at least one"):
        TrustRoots.from_files([])


def test_a_file_can_not_call_itself_public_good(tmp_path: Path) -> None:
    path = tmp_path / "public-good.json"
    path.write_bytes(sigstore().trusted_root_json())
    roots = TrustRoots.from_files([str(path)])
    assert not roots.public_good
    assert roots.roots[0].name == "public-good-file"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda root: root.clear(), id="empty"),
        pytest.param(lambda root: root.update(tlogs=[]), id="no log"),
        pytest.param(lambda root: root.update(tlogs=root["tlogs"] * 2), id="one log twice"),
        pytest.param(lambda root: root.update(certificateAuthorities=[]), id="no authority"),
        pytest.param(lambda root: root.update(mediaType="text/plain"), id="another type"),
        pytest.param(lambda root: [t["publicKey"].update(rawBytes="AAAA") for t in root["tlogs"]], id="no usable key"),
        pytest.param(
            lambda root: root["certificateAuthorities"][0]["certChain"]["certificates"][0].update(rawBytes="AAAA"),
            id="certificate that is none",
        ),
        pytest.param(lambda root: root["ctlogs"][0]["publicKey"].update(rawBytes="AAAA"), id="CT key that is none"),
    ],
)
def test_a_root_with_parts_that_can_not_be_used_is_refused_at_start(change: object) -> None:
    root = json.loads(sigstore().trusted_root_json())
    assert callable(change)
    change(root)
    with pytest.raises(InputError) as caught:
        load_root("broken", json.dumps(root).encode(), reserved=frozenset())
    assert caught.value.code == "TRUST_ROOT_INVALID"


def test_a_log_with_a_key_that_nobody_can_read_is_left_out() -> None:
    document = json.loads(sigstore().trusted_root_json())
    document["tlogs"][0]["publicKey"]["rawBytes"] = "AAAA"
    root = load_root("lab", json.dumps(document).encode(), reserved=frozenset())
    judge = SigstoreVerifier(TrustRoots((root,)))
    assert accepted(minted(log="v2"), by=judge).root == "lab"
    assert refused(minted(log="v1"), by=judge).rule == "S10"


def test_a_file_that_is_no_json_or_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "root.json"
    path.write_bytes(b"no json")
    with pytest.raises(InputError, match="expected a Sigstore trusted root"):
        TrustRoots.from_setting(str(path))
    path.write_bytes(b" " * ((4 << 20) + 1))
    with pytest.raises(InputError, match="larger than 4194304 bytes"):
        TrustRoots.from_setting(str(path))
    with pytest.raises(InputError, match="expected a readable trusted root"):
        TrustRoots.from_setting(str(tmp_path))


def test_the_description_says_until_when_each_part_is_trusted() -> None:
    root = private_root(
        "lab",
        issuers=frozenset({PARTNER, OTHER}),
        windows=Windows(rekor_v1=Window(end=AT), ct_log=Window(end=AT.replace(year=2027))),
    )
    said = TrustRoots((root,)).describe()[0]
    assert said["name"] == "lab"
    assert said["sha256"] == root.sha256
    assert said["issuers"] == [OTHER, PARTNER]
    assert said["until"] == "2027-05-08T10:24:00Z"
    logs = said["logs"]
    assert isinstance(logs, list)
    assert [(log["log"], log["until"]) for log in logs] == [
        ("rekor.sandbox.example", "2026-05-08T10:24:00Z"),
        ("log2026-1.rekor.sandbox.example", None),
    ]


def test_the_public_root_is_described_with_its_own_digest() -> None:
    (said,) = TrustRoots.from_setting("public-good").describe()
    assert said["sha256"] == hashlib.sha256(public_good_bytes()).hexdigest()
    assert said["until"] is not None


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        pytest.param("public-good", RootSpec("public-good"), id="word"),
        pytest.param(" a/root.json ", RootSpec("a/root.json"), id="path"),
        pytest.param(
            "root.json;issuer=https://a.example;issuer=https://b.example",
            RootSpec("root.json", frozenset({"https://a.example", "https://b.example"})),
            id="limited",
        ),
    ],
)
def test_an_item_of_the_setting_is_read(text: str, spec: RootSpec) -> None:
    assert RootSpec.parse(text) == spec


@pytest.mark.parametrize(
    ("version", "origin", "wrote"),
    [
        pytest.param("v1", "rekor.sandbox.example - 1193050959916656506", True, id="v1"),
        pytest.param("v1", "rekor.sandbox.example - 42", True, id="v1, another tree"),
        pytest.param("v1", "rekor.sandbox.example", True, id="v1, no tree"),
        pytest.param("v1", "rekor.sandbox.example.evil.example - 42", False, id="v1, longer host"),
        pytest.param("v1", "rekor.sandbox.example - x", False, id="v1, no number"),
        pytest.param("v1", "log2026-1.rekor.sandbox.example", False, id="v1, the other log"),
        pytest.param("v2", "log2026-1.rekor.sandbox.example", True, id="v2"),
        pytest.param("v2", "rekor.sandbox.example", False, id="v2, the other log"),
    ],
)
def test_a_log_knows_its_origin(version: str, origin: str, wrote: bool) -> None:  # noqa: FBT001
    log_id = sigstore().logs[version].log_id  # type: ignore[index]
    assert private_root().logs[log_id].wrote(origin) is wrote
