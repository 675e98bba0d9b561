"""The committed pointer tree: its contract, discovery and index (evidence-format 6.3, 11.6 T1-T8)."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from app.core.bundle import EntryKind, ReadFault
from app.core.cross_check import SignerClaim
from app.core.errors import InputError
from app.core.identity import SourceClass, source_slug
from app.core.pointer import Pointer, dump_pointer
from app.core.tree import TreeCheck, check_tree, discover, render_index
from app.core.tree_listing import TreeListing, TreeNode

ISSUER = "https://github.com/login/oauth"
OCTOCAT, ALICE, BOB, NVIDIA = (
    f"1234567+{name}@users.noreply.github.com" for name in ("octocat", "alice", "bob", "nvidia")
)
CLASSES = {OCTOCAT: SourceClass.COMMUNITY, ALICE: SourceClass.PARTNER, NVIDIA: SourceClass.FIRST_PARTY}
V3 = "https://aicr.run/recipe-evidence/v3"
RECIPE = "h100-eks-ubuntu-training"


def classify(issuer: str, identity: str) -> SourceClass | None:
    """A list of three."""
    return CLASSES.get(identity) if issuer == ISSUER else None


def pointer(identity: str = OCTOCAT, *, number: int = 1, recipe: str = RECIPE, **changes: object) -> Pointer:
    """A signed pointer to the bundle of that number."""
    base = Pointer(
        recipe,
        V3,
        oci="ghcr.io/octocat/aicr-evidence:v1",
        digest=f"sha256:{number:064x}",
        signer=SignerClaim(identity, ISSUER, number),
        attested_at=datetime(2026, 5, 8, 10, 23, 11, tzinfo=UTC),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def committed(found: Pointer, *, recipe: str = RECIPE, source: str = "", name: str = "") -> TreeNode:
    """The file of a pointer, by default where it belongs."""
    signer = found.signer or SignerClaim(OCTOCAT, ISSUER)
    directory = source or source_slug(signer.issuer, signer.identity)
    file = name or f"{found.digest.replace(':', '-')}.yaml"
    return TreeNode(f"{recipe}/{directory}/{file}", EntryKind.FILE, dump_pointer(found))


def tree(*nodes: TreeNode) -> TreeListing:
    """A listing with the directories that its files need."""
    parents = {node.path.rsplit("/", depth)[0] for node in nodes for depth in range(1, node.depth)}
    directories = [TreeNode(path, EntryKind.DIRECTORY) for path in parents]
    return TreeListing("evidence", tuple(sorted([*directories, *nodes], key=lambda node: node.path)))


def checked(*nodes: TreeNode, allow_pending: bool = False) -> TreeCheck:
    return check_tree(tree(*nodes), classify=classify, allow_pending=allow_pending)


def root_file(name: str, data: bytes | None = b"", kind: EntryKind = EntryKind.FILE) -> TreeNode:
    return TreeNode(name, kind, data)


def test_a_tree_that_keeps_the_contract_is_clean() -> None:
    found = checked(
        root_file("README.md", None),
        root_file("pointers.yaml"),
        root_file("allowlist.yaml"),
        committed(pointer()),
        committed(pointer(ALICE, number=2)),
    )
    assert (found.problems, found.warnings) == ((), ())
    assert len(found.pointers) == 2


@pytest.mark.parametrize(
    ("node", "message"),
    [
        pytest.param(committed(pointer(), source="0" * 32), "path ownership / squat", id="T1"),
        pytest.param(committed(pointer(signer=None)), "committed pointer must be signed", id="T2"),
        pytest.param(committed(pointer(BOB)), "is not in the allowlist", id="T3"),
        pytest.param(
            TreeNode(f"{RECIPE}/{'0' * 32}/bad\\xff.yaml", EntryKind.OTHER, fault=ReadFault.NOT_REGULAR),
            "invalid pointer: its name is no UTF-8",
            id="name-that-is-no-text",
        ),
        pytest.param(root_file("stray.txt"), "unexpected file at evidence root", id="T4-root"),
        pytest.param(root_file(f"{RECIPE}.yaml"), "unexpected file at evidence root", id="legacy-flat-pointer"),
        pytest.param(
            root_file("allowlist.yaml", kind=EntryKind.SYMLINK),
            "unexpected file at evidence root",
            id="linked-root-file",
        ),
        pytest.param(
            TreeNode(f"{RECIPE}/loose.yaml", EntryKind.FILE), "must live under <recipe>/<source>/", id="T4-recipe"
        ),
        pytest.param(committed(pointer(recipe="other")), "does not match recipe directory", id="T5"),
        pytest.param(
            replace(committed(pointer()), data=b"recipe: ["), "invalid pointer: pointer file is not valid", id="broken"
        ),
        pytest.param(
            replace(committed(pointer()), data=None, fault=ReadFault.UNAVAILABLE), "invalid pointer:", id="unreadable"
        ),
        pytest.param(replace(committed(pointer()), kind=EntryKind.SYMLINK, data=None), "invalid pointer:", id="a-link"),
        pytest.param(committed(pointer(NVIDIA)), "first-party signer must ingest directly", id="first-party"),
        pytest.param(committed(pointer(), name="run.yaml"), "file name does not match bundle.digest", id="file-name"),
        pytest.param(
            committed(pointer(digest="sha256:abc")), "expected sha256: and 64 lowercase hex", id="short-digest"
        ),
        pytest.param(
            committed(pointer("a\nb", signer=SignerClaim("a\nb", ISSUER)), source="0" * 32),
            "invalid pointer:",
            id="line-break-in-identity",
        ),
        pytest.param(
            TreeNode("broken", EntryKind.DIRECTORY, fault=ReadFault.UNAVAILABLE),
            "failed to read recipe directory",
            id="recipe-directory",
        ),
        pytest.param(
            TreeNode(f"{RECIPE}/broken", EntryKind.DIRECTORY, fault=ReadFault.UNAVAILABLE),
            "failed to read source directory",
            id="source-directory",
        ),
    ],
)
def test_a_violation_is_one_line_with_its_path(node: TreeNode, message: str) -> None:
    problems = [problem for problem in checked(node).problems if problem.path == f"evidence/{node.path}"]
    assert len(problems) == 1
    assert message in problems[0].message
    assert str(problems[0]) == f"evidence/{node.path}: {problems[0].message}"


def test_t4_a_loose_file_and_a_stray_one_are_two_problems() -> None:
    found = checked(TreeNode(f"{RECIPE}/loose.txt", EntryKind.FILE), root_file("stray"))
    assert len(found.problems) == 2


def test_the_first_violation_of_a_pointer_speaks() -> None:
    wrong = committed(pointer(BOB, recipe="other"), source="0" * 32, name="x.yaml")
    assert ["does not match recipe directory" in str(problem) for problem in checked(wrong).problems] == [True]


def test_other_files_in_a_source_directory_are_not_looked_at() -> None:
    beside = committed(pointer()).path.rpartition("/")[0]
    nodes = [TreeNode(f"{beside}/notes.md", EntryKind.FILE), TreeNode(f"{beside}/old", EntryKind.DIRECTORY)]
    assert checked(committed(pointer()), *nodes).problems == ()


def test_a_stranger_in_a_message_is_masked() -> None:
    found = checked(committed(pointer("someone@example.org")))
    assert "s…e@example.org" in found.problems[0].message
    assert "someone" not in found.problems[0].message


def test_what_ingest_would_refuse_and_personal_addresses_are_warnings() -> None:
    def classes(_issuer: str, _identity: str) -> SourceClass:
        return SourceClass.COMMUNITY

    found = check_tree(
        tree(committed(pointer("someone@example.org"))),
        classify=classes,
        refusal=lambda reference: f"{reference.partition('/')[0]} is not trusted",
    )
    assert found.problems == ()
    assert [str(line).partition(": ")[2] for line in found.warnings] == [
        "ingest would refuse its registry: ghcr.io is not trusted",
        "names a personal address (s…e@example.org), public for as long as the history",
    ]


# --- pending -----------------------------------------------------------------------------------------

PENDING = pointer(signer=None)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        pytest.param(root_file(f"{RECIPE}.yaml", dump_pointer(PENDING)), "", id="pending"),
        pytest.param(root_file("stray.txt"), "unexpected file at evidence root", id="other-file"),
        pytest.param(root_file(f"{RECIPE}.yaml", b"x"), "invalid pending pointer", id="broken"),
        pytest.param(root_file("other.yaml", dump_pointer(PENDING)), "flat pending pointer must be named", id="name"),
        pytest.param(
            root_file(f"{RECIPE}.yaml", dump_pointer(pointer())), "signed pointer must live under", id="signed"
        ),
        pytest.param(
            root_file(f"{RECIPE}.yaml", dump_pointer(pointer(signer=None, oci="", digest=""))),
            "must reference a pushed bundle",
            id="not-pushed",
        ),
    ],
)
def test_allow_pending_takes_flat_unsigned_pointers_for_a_while(node: TreeNode, message: str) -> None:
    lines = [line.message for line in checked(node, allow_pending=True).problems]
    assert [message in line for line in lines] == ([True] if message else [])


# --- discovery and index -----------------------------------------------------------------------------


def test_t7_one_recipe_with_two_sources_gives_two_pointers_in_order() -> None:
    nodes = [committed(pointer()), committed(pointer(ALICE, number=2)), committed(pointer(recipe="x"), recipe="x")]
    found = discover(tree(*nodes), RECIPE)
    assert [node.path for node in found] == sorted(node.path for node in nodes[:2])


def test_t8_an_unknown_recipe_gives_none_and_an_empty_name_is_an_error() -> None:
    assert discover(tree(committed(pointer())), "unknown") == ()
    with pytest.raises(InputError):
        discover(tree(), "")


def test_the_index_is_sorted_by_recipe_source_and_digest() -> None:
    profiled = pointer(ALICE, number=3, recipe="a-x-y", profile="x=y")
    found = checked(
        committed(pointer(number=2)),
        committed(pointer(number=1)),
        committed(profiled, recipe="a-x-y"),
        root_file("stray"),
    )
    octocat, alice = source_slug(ISSUER, OCTOCAT), source_slug(ISSUER, ALICE)
    assert render_index(found, classify=classify).decode() == (
        "pointers:\n"
        "  - recipe: a-x-y\n"
        "    profile: x=y\n"
        f'    source: "{alice}"\n'
        "    class: partner\n"
        f"    digest: sha256:{3:064x}\n"
        "    oci: ghcr.io/octocat/aicr-evidence:v1\n"
        "    predicateType: https://aicr.run/recipe-evidence/v3\n"
        "    attestedAt: 2026-05-08T10:23:11Z\n"
        "  - recipe: h100-eks-ubuntu-training\n"
        '    profile: ""\n'
        f'    source: "{octocat}"\n'
        "    class: community\n"
        f"    digest: sha256:{1:064x}\n"
        "    oci: ghcr.io/octocat/aicr-evidence:v1\n"
        "    predicateType: https://aicr.run/recipe-evidence/v3\n"
        "    attestedAt: 2026-05-08T10:23:11Z\n"
        "  - recipe: h100-eks-ubuntu-training\n"
        '    profile: ""\n'
        f'    source: "{octocat}"\n'
        "    class: community\n"
        f"    digest: sha256:{2:064x}\n"
        "    oci: ghcr.io/octocat/aicr-evidence:v1\n"
        "    predicateType: https://aicr.run/recipe-evidence/v3\n"
        "    attestedAt: 2026-05-08T10:23:11Z\n"
        "schemaVersion: 1.0.0\n"
    )


def test_an_empty_tree_has_an_empty_index() -> None:
    assert render_index(checked(), classify=classify) == b"pointers: []\nschemaVersion: 1.0.0\n"
