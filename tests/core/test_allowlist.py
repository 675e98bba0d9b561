"""Loading, classification and grouping of signers: corroboration 1, trust 4 and 6."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.allowlist import MAX_ALLOWLIST_BYTES, Allowlist, classify_without_list
from app.core.allowlist_diff import diff_allowlists, diff_verdicts
from app.core.errors import AllowlistInvalid
from app.core.identity import SourceClass
from app.core.verdict import State
from tests.support.runs import GHA, GHO, allowlist_text, listing, make_run, person, verdict_of, workflow

S1 = "b0e01b470866f200af3b5cb4bcc303aa"
S2 = "8c17c3fbd0058a59c1a93d23e87f3229"
PARTNER = "https://oidc.partner-lab.example"
PARTNER_SLUG = "db8ccf8f626af92bd7ed4a07bddfb438"
BASE = r"https://github\.com/NVIDIA/aicr/\.github/workflows/"


def w(name: str, ref: str = "refs/heads/.+") -> str:
    return rf"^{BASE}{name}\.yaml@{ref}$"


def entry(
    *, issuer: str | None = GHA, source: str = "", pattern: str = "", label: str = "", identity: str = ""
) -> dict[str, str]:
    fields = {
        "label": label,
        "issuer": issuer or "",
        "source": source,
        "identityPattern": pattern,
        "identity": identity,
    }
    return {key: value for key, value in fields.items() if value}


def document(
    first: list[dict[str, str]] | None = None,
    community: list[dict[str, str]] | None = None,
    partner: list[dict[str, str]] | None = None,
    schema: str | None = "1.0.0",
) -> bytes:
    lines = [f"schemaVersion: {schema}"] if schema else []
    for name, entries in (("firstParty", first), ("community", community), ("partner", partner)):
        if entries is None:
            continue
        lines.append(f"{name}:")
        for item in entries:
            body = [f"{key}: '{value}'" for key, value in item.items()]
            lines += [f"  - {body[0]}", *(f"    {line}" for line in body[1:])]
    return ("\n".join(lines) + "\n").encode()


def community(source: str, issuer: str = GHO, label: str = "") -> dict[str, str]:
    return entry(issuer=issuer, source=source, label=label)


ACCEPTED = [
    pytest.param(document(), 0, id="A01"),
    pytest.param(document([entry(label="x", pattern=w("x"))]), 1, id="A02"),
    pytest.param(document(community=[community(S1)]), 1, id="A03"),
    pytest.param(document(community=[community(S1), community(S2)]), 2, id="A04"),
    pytest.param(document(schema="1.0"), 0, id="A05-1.0"),
    pytest.param(document(schema="1.0.7"), 0, id="A05-1.0.7"),
    pytest.param(document([entry(pattern=w("x")), entry(pattern=w("y"))]), 2, id="A06"),
    pytest.param(document([entry(pattern=w("x")), entry(issuer="https://other.example", pattern=w("x"))]), 2, id="A07"),
    pytest.param(document([entry(pattern=w("x", "refs/heads/main"))]), 1, id="A08"),
    pytest.param(
        document(
            [entry(label=f"aicr-uat-{x}", pattern=w(f"uat-{x}")) for x in ("aws", "gcp", "azure", "kind")],
            [community(S1), community(S2), community("7e18f737311b2dc3b2f269dd78396b03"), community("0" * 32, GHA)],
            [],
        ),
        8,
        id="A09",
    ),
    pytest.param(
        b"schemaVersion: 1.0.0\ncommunity:\n  - issuer: https://github.com/login/oauth\n"
        b"    source: 12345678901234567890123456789012\n",
        1,
        id="A39",
    ),
    pytest.param(b"schemaVersion: 1.0.0\nfirstParty:\ncommunity: []\npartner: ~\n", 0, id="null-and-empty-sections"),
]

REJECTED = [
    pytest.param(document(schema="2.0.0"), "J6", id="A10"),
    pytest.param(document(schema="1.1.0"), "J6", id="A11"),
    pytest.param(b"", "J6", id="A12"),
    pytest.param(document(community=[entry(issuer=None, source=S1)]), "J7", id="A13"),
    pytest.param(document(community=[entry(issuer=GHO, source=S1, pattern=w("x"))]), "J8", id="A14"),
    pytest.param(document(community=[entry(issuer=GHO)]), "J8", id="A15"),
    pytest.param(document([community(S1)]), "J9", id="A16"),
    pytest.param(document(partner=[entry(pattern=w("x"))]), "J10", id="A17"),
    pytest.param(document(community=[community("abc")]), "J11", id="A18"),
    pytest.param(document(community=[community("b0e01b470866")]), "J11", id="A19"),
    pytest.param(document(community=[community(S1.upper())]), "J11", id="A20"),
    pytest.param(document(community=[community("z" * 32)]), "J11", id="A21"),
    pytest.param(document([entry(pattern=w("x").removeprefix("^"))]), "J12", id="A22"),
    pytest.param(document([entry(pattern=w("x").removesuffix("$"))]), "J12", id="A23"),
    pytest.param(document([entry(pattern=rf"^{BASE}x\.yaml$")]), "J13", id="A24"),
    pytest.param(document([entry(pattern=rf"^{BASE}x\.yaml\@refs/heads/main$")]), "J13", id="A25"),
    pytest.param(
        document([entry(pattern=r"^https://github\.com/.+/aicr/\.github/workflows/x\.yaml@refs/heads/.+$")]),
        "J14",
        id="A26",
    ),
    pytest.param(document([entry(pattern=r"^https://github\.com/NVIDIA/.*@refs/heads/.+$")]), "J14", id="A27"),
    pytest.param(document([entry(pattern=r"^https://github.com/NVIDIA/aicr/w\.yaml@refs/heads/.+$")]), "J14", id="A28"),
    pytest.param(document([entry(pattern=rf"^{BASE}uat-(aws|gcp)\.yaml@refs/heads/main$")]), "J14", id="A29"),
    pytest.param(document([entry(pattern=w("x", "refs/heads/[a-z"))]), "J15", id="A30"),
    pytest.param(document(community=[community(S1, label="twin"), community(S2, label="twin")]), "J16", id="A31"),
    pytest.param(document([entry(label="twin", pattern=w("x"))], [community(S1, label="twin")]), "J16", id="A32"),
    pytest.param(document(community=[community(S1)], partner=[community(S1)]), "J17", id="A33"),
    pytest.param(document(community=[community(S1), community(S1, issuer=GHA)]), "J17", id="A34"),
    pytest.param(document([entry(pattern=w("x")), entry(pattern=w("x", "refs/tags/.+"))]), "J18", id="A35"),
    pytest.param(document(community=[entry(issuer=GHO, source=S1, identity="dev-one@example.org")]), "J5", id="A36"),
    pytest.param(b"schemaVersion: 1.0.0\nfirstparty: []\n", "J5", id="A37"),
    pytest.param(b"schemaVersion: 1.0.0\n#" + b"x" * (MAX_ALLOWLIST_BYTES - 21), "J3", id="A38"),
    pytest.param(b"schemaVersion: 1.0.0\nschemaVersion: 1.0.0\n", "J4", id="duplicate-key"),
    pytest.param(b"schemaVersion: [", "J4", id="not-yaml"),
    pytest.param(b"- schemaVersion: 1.0.0\n", "J4", id="a-list"),
    pytest.param(b"schemaVersion: 1.0.0\n---\ncommunity: []\n", "J4", id="second-document"),
    pytest.param(b"schemaVersion: &v 1.0.0\n", "J4", id="anchor"),
    pytest.param(b"schemaVersion: 1.0.0\ncommunity: {}\n", "J4", id="section-is-a-mapping"),
    pytest.param(b"schemaVersion: 1.0.0\ncommunity: [text]\n", "J4", id="entry-is-text"),
    pytest.param(b"schemaVersion: 1.0.0\ncommunity: [{issuer: [a]}]\n", "J4", id="issuer-is-a-list"),
    pytest.param(b"schemaVersion: 1\n", "J6", id="schema-1"),
    pytest.param(b"community: []\n", "J6", id="schema-missing"),
    pytest.param(b"schemaVersion: 1.0.0\ncommunity: [~]\n", "J7", id="null-entry"),
]

GAPS = [
    pytest.param(r"^https://github\.com/o/r/w\.yaml@refs/heads/main|.*$", "G1", id="alternation-after-the-at"),
    pytest.param(r"^https://github\.com/o/r/w\.yaml@refs/heads/main\$", "G2", id="escaped-final-dollar"),
    pytest.param(r"^https://github\.com/\w\w\w/r/w\.yaml@main$", "G3", id="class-escape-before-the-at"),
    pytest.param(r"^https://github\.com/\Qo\E/w\.yaml@main$", "G3", id="quoting-before-the-at"),
    pytest.param("^@.*$", "G4", id="empty-left-side"),
    pytest.param(r"^https://github\.com/o/r/w\.yaml@?.*$", "G5", id="optional-at"),
    pytest.param(r"^https://github\.com/o/r/w\.yaml@|.*$", "G5", id="at-in-an-alternation"),
    pytest.param(r"^https://github\.com/o/r/w\.yaml@.*$", "G5", id="anything-after-the-at"),
    pytest.param(r"^https://github\.com/o/r/w\.yaml@$", "G5", id="nothing-after-the-at"),
    pytest.param(r"^https://github\.com/o/r/w\.yaml@r?.*$", "G5", id="optional-letter-after-the-at"),
    pytest.param(r"^https://github\.com/o/r/w\.yaml@r*.*$", "G5", id="repeated-letter-after-the-at"),
    pytest.param(r"^https://github\.com/o/r/w\.yaml@r{0,9}.*$", "G5", id="counted-letter-after-the-at"),
    pytest.param(r"^https://github\.com/o/r/w\.yaml@r+?.*$", "G5", id="lazy-letter-after-the-at"),
    pytest.param(r"^https://github\.com/o/r/w\.yaml@\.*$", "G5", id="repeated-escape-after-the-at"),
    pytest.param(r"^https://github\.com/o/r/w\.yaml@\w.*$", "G5", id="class-after-the-at"),
    pytest.param(r"^https://github\.com/o/r/w\.yaml@refs/(?=heads)$", "J15", id="look-ahead"),
    pytest.param(r"^https://github\.com/o/r/w\.yaml@refs/(a)\1$", "J15", id="back-reference"),
    pytest.param(r"^https://github\.com/o/r/w\.yaml@refs/\C$", "J15", id="any-byte"),
    pytest.param(r"^https://github\.com/o/r/w\.yaml@refs/a)|(?:.*$", "J15", id="unbalanced-on-the-right"),
    pytest.param(r"^https://github\.com/o/r/w\.yaml@refs/\Q(|.*$", "J15", id="quoted-end"),
    pytest.param(r"^https://github\.com/o/r/w\.yaml@refs/((a{1000}){1000}){1000}$", "J15", id="exploding-repetition"),
]


@pytest.mark.parametrize(("data", "entries"), ACCEPTED)
def test_valid_lists_load(data: bytes, entries: int) -> None:
    assert len(Allowlist.load(data).entries) == entries


@pytest.mark.parametrize(("data", "rule"), REJECTED)
def test_first_broken_rule_is_named(data: bytes, rule: str) -> None:
    with pytest.raises(AllowlistInvalid) as caught:
        Allowlist.load(data)
    assert caught.value.rule == rule
    assert caught.value.details["rule"] == rule


@pytest.mark.parametrize(("pattern", "rule"), GAPS)
def test_gaps_of_upstreams_pattern_check_are_closed(pattern: str, rule: str) -> None:
    with pytest.raises(AllowlistInvalid) as caught:
        Allowlist.load(document([entry(pattern=pattern)]))
    assert caught.value.rule == rule


@pytest.mark.parametrize(
    ("broken", "name"),
    [
        pytest.param(entry(issuer=GHO, label="lab"), "lab", id="label"),
        pytest.param(entry(issuer=None, source=S1), f"source {S1}", id="slug"),
        pytest.param(entry(issuer=GHO, pattern="^a@b$"), "pattern ^a@b$", id="pattern"),
    ],
)
def test_errors_name_the_entry(broken: dict[str, str], name: str) -> None:
    with pytest.raises(AllowlistInvalid, match=r"^" + name.replace("^", r"\^").replace("$", r"\$")):
        Allowlist.load(document(community=[broken]))


def test_entries_are_checked_one_after_the_other() -> None:
    data = document([entry(pattern="no-anchor@x")], [entry(issuer=None, source="abc")])
    with pytest.raises(AllowlistInvalid) as caught:
        Allowlist.load(data)
    assert caught.value.rule == "J12"


def test_labels_are_checked_before_overlaps() -> None:
    with pytest.raises(AllowlistInvalid) as caught:
        Allowlist.load(document(community=[community(S1, label="x"), community(S1, label="x")]))
    assert caught.value.rule == "J16"


def test_committed_list_is_upstreams_four_workflows() -> None:
    allowlist = Allowlist.load((Path(__file__).parents[2] / "allowlist.yaml").read_bytes())
    assert [entry.label for entry in allowlist.entries] == [
        "aicr-uat-aws",
        "aicr-uat-gcp",
        "aicr-uat-azure",
        "aicr-uat-kind",
    ]
    for cloud in ("aws", "gcp", "azure", "kind"):
        identity = f"https://github.com/NVIDIA/aicr/.github/workflows/uat-{cloud}.yaml@refs/heads/main"
        found = allowlist.classify(GHA, identity)
        assert (found.source_class, found.allowlisted, found.label) == (
            SourceClass.FIRST_PARTY,
            True,
            f"aicr-uat-{cloud}",
        )


def test_version_is_the_hash_of_the_bytes() -> None:
    first, second = Allowlist.load(b"schemaVersion: 1.0.0\n"), Allowlist.load(b"schemaVersion: 1.0.0 # same\n")
    assert first.sha256 == "4b710d68250bc804d7f4e6e051854719ef71b458398d4243be82cec59025db27"
    assert first.sha256 != second.sha256


C_LIST = Allowlist.load(
    document([entry(pattern=w("uat-aws"))], [community(S1)], [community(PARTNER_SLUG, issuer=PARTNER)])
)
AWS = "https://github.com/NVIDIA/aicr/.github/workflows/uat-aws.yaml"

CLASSIFIED = [
    pytest.param(GHO, "dev-one@example.org", "community", True, id="C01"),
    pytest.param(GHO, "dev-two@example.org", "community", False, id="C02"),
    pytest.param(GHO, "Dev-One@example.org", "community", False, id="C03"),
    pytest.param(GHA, "dev-one@example.org", "community", False, id="C04"),
    pytest.param(GHA, f"{AWS}@refs/heads/main", "first-party", True, id="C05"),
    pytest.param(GHA, f"{AWS}@refs/heads/release/v1.0", "first-party", True, id="C06"),
    pytest.param(GHA, f"{AWS}@refs/tags/v1.0.0", "community", False, id="C07"),
    pytest.param(GHA, f"{AWS.replace('NVIDIA', 'someone-else')}@refs/heads/main", "community", False, id="C08"),
    pytest.param(GHA, f"{AWS.replace('github.com', 'githubXcom')}@refs/heads/main", "community", False, id="C09"),
    pytest.param("https://evil.example", f"{AWS}@refs/heads/main", "community", False, id="C10"),
    pytest.param(PARTNER, f"{PARTNER}/attest", "partner", True, id="C11"),
    pytest.param(GHA, f"x{AWS}@refs/heads/main", "community", False, id="C12"),
    pytest.param(GHA, "", "community", False, id="C13"),
    pytest.param("", f"{AWS}@refs/heads/main", "community", False, id="empty-issuer"),
    pytest.param(GHA, f"{AWS}@refs/heads/main\n", "community", False, id="final-newline"),
    pytest.param(GHA, f"{AWS}@refs/heads/ma\x00in", "community", False, id="control-character"),
    pytest.param(GHA, f"{AWS}@refs/heads/ma\u200bin", "community", False, id="zero-width"),
    pytest.param(GHA, f"{AWS}@refs/heads/\u202emain", "community", False, id="bidi"),
    pytest.param(GHA, f"{AWS}@refs/heads/\ud800", "community", False, id="lone-surrogate"),
    pytest.param(GHA, f"{AWS}@refs/heads/", "community", False, id="empty-branch"),
    pytest.param(GHA, f"{AWS}evil/x", "community", False, id="no-at"),
]


@pytest.mark.parametrize(("issuer", "identity", "source_class", "allowlisted"), CLASSIFIED)
def test_signers_are_classified(issuer: str, identity: str, source_class: str, *, allowlisted: bool) -> None:
    found = C_LIST.classify(issuer, identity)
    assert (found.source_class.value, found.allowlisted) == (source_class, allowlisted)
    assert (found.entry is not None) == allowlisted


@pytest.mark.parametrize(
    ("identity", "source_class", "allowlisted"),
    [
        pytest.param(f"{AWS}@refs/heads/main", "first-party", True, id="C14"),
        pytest.param(
            "https://github.com/NVIDIA/aicr/.github/workflows/on-tag.yaml@refs/tags/v1", "community", False, id="C15"
        ),
        pytest.param(f"{AWS.replace('aws', 'kind')}@refs/heads/main", "community", False, id="kind-is-not-built-in"),
        pytest.param(f"{AWS}@refs/tags/v1", "community", False, id="tag"),
        pytest.param(f"{AWS}@refs/heads/", "community", False, id="empty-branch"),
    ],
)
def test_without_a_file_three_workflows_are_first_party(identity: str, source_class: str, *, allowlisted: bool) -> None:
    found = classify_without_list(GHA, identity)
    assert (found.source_class.value, found.allowlisted) == (source_class, allowlisted)
    assert not classify_without_list("https://evil.example", identity).allowlisted


def test_slug_beats_pattern() -> None:
    signer = workflow("refs/heads/main")
    allowlist = Allowlist.load(document([entry(pattern=w("uat-aws"))], [community(signer.slug, issuer=GHA)]))
    assert allowlist.classify(signer.issuer, signer.identity).source_class is SourceClass.COMMUNITY


def test_slug_of_another_issuer_lists_nobody() -> None:
    """Older versions compared the slug alone."""
    allowlist = Allowlist.load(document(community=[community(S1, issuer=GHA)]))
    assert not allowlist.classify(GHO, "dev-one@example.org").allowlisted


def test_empty_list_lists_nobody() -> None:
    assert not Allowlist.empty().classify(GHO, "dev-one@example.org").allowlisted


REFS = rf"^{BASE}uat-aws\.yaml@refs/.+$"


def test_refs_of_one_workflow_are_one_signer() -> None:
    allowlist = listing(patterns=[REFS])
    keys = {
        allowlist.signer_key(GHA, f"{AWS}@{ref}")
        for ref in ("refs/heads/main", "refs/tags/v1", "refs/heads/x@refs/heads/main", "refs/heads/a@b")
    }
    assert keys == {f"{GHA} {AWS}"}


def test_slug_beside_a_pattern_makes_no_second_signer() -> None:
    main = workflow("refs/heads/main")
    allowlist = listing(main, patterns=[REFS])
    branch = workflow("refs/heads/x")
    assert allowlist.signer_key(*_pair(main)) == allowlist.signer_key(*_pair(branch))


def test_people_are_their_own_signers() -> None:
    ann, bob = person("ann"), person("bob")
    allowlist = listing(ann, bob)
    assert allowlist.signer_key(*_pair(ann)) == ann.canonical_id
    assert allowlist.signer_key(*_pair(bob)) == bob.canonical_id


def test_unlisted_refs_stay_apart() -> None:
    allowlist = listing()
    keys = {allowlist.signer_key(*_pair(workflow(ref))) for ref in ("refs/heads/main", "refs/heads/x")}
    assert len(keys) == 2


@pytest.mark.parametrize(
    ("ref", "first"),
    [
        ("refs/heads/main", True),
        ("refs/heads/master", True),
        ("refs/heads/release/1.2", True),
        ("refs/tags/v1", True),
        ("refs/heads/feature", False),
        ("refs/heads/main2", False),
        ("refs/heads/x@refs/heads/main", False),
        ("refs/heads/release", False),
        ("refs/pull/1/merge", False),
    ],
)
def test_main_release_and_tags_speak_first(ref: str, *, first: bool) -> None:
    assert listing(patterns=[REFS]).speaks_first(GHA, f"{AWS}@{ref}") is first


def _pair(signer: object) -> tuple[str, str]:
    return (signer.issuer, signer.identity)  # type: ignore[attr-defined]


@settings(deadline=None, max_examples=200)
@given(st.text(max_size=60))
def test_a_pattern_admits_only_its_literal_and_an_at(tail: str) -> None:
    allowlist = listing(patterns=[rf"^{BASE}uat-aws\.yaml@refs/heads/(main|release/.+)$"])
    found = allowlist.classify(GHA, AWS + tail)
    if found.allowlisted:
        assert tail.startswith("@refs/heads/")
        assert tail == "@refs/heads/main" or tail.startswith("@refs/heads/release/")


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=200))
def test_any_bytes_load_or_are_refused_with_a_rule(data: bytes) -> None:
    try:
        Allowlist.load(data)
    except AllowlistInvalid as err:
        assert err.rule[0] in "JG"  # noqa: PT017


# --- differences -----------------------------------------------------------------------------------


def test_difference_names_added_removed_and_changed_entries() -> None:
    ann, bob, cy = person("ann"), person("bob"), person("cy")
    old = Allowlist.load(allowlist_text(ann, bob, patterns=[REFS]).encode())
    narrowed = REFS.replace("refs/.+", "refs/heads/.+")
    new = Allowlist.load(allowlist_text(cy, bob, patterns=[narrowed], labels={bob.slug: "bob-lab"}).encode())
    found = diff_allowlists(old, new)
    assert [item.source for item in found.added] == [cy.slug]
    assert [item.source for item in found.removed] == [ann.slug]
    assert [(change.after.name, change.what) for change in found.changed] == [
        (f"pattern {narrowed}", ("pattern",)),
        ("bob-lab", ("label",)),
    ]


def test_order_in_the_file_is_no_difference() -> None:
    ann, bob = person("ann"), person("bob")
    assert diff_allowlists(listing(ann, bob), listing(bob, ann)).empty


def test_difference_of_verdicts_names_rows_and_sources() -> None:
    ann, bob = person("ann"), person("bob")
    runs = [make_run(ann), make_run(bob)]
    found = diff_verdicts(verdict_of(runs, ann, bob), verdict_of(runs, ann))
    assert (found.before, found.after) == (State.CONFIRMED, State.SINGLE)
    assert [(row.phase, row.name, row.before, row.after) for row in found.rows] == [
        ("deployment", "operator-health", State.CONFIRMED, State.SINGLE)
    ]
    assert [(change.source, change.counted_before, change.counted_after) for change in found.sources] == [
        (bob.slug, True, False)
    ]
    assert not found.empty
    assert diff_verdicts(verdict_of(runs, ann), verdict_of(runs, ann)).empty


def test_a_list_of_the_past_is_counted_without_what_todays_rules_refuse() -> None:
    """Versions are append-only; a rule that got stricter keeps no service from its own past."""
    text = (
        "schemaVersion: 1.0.0\nfirstParty:\n"
        "  - issuer: https://token.actions.githubusercontent.com\n"
        "    identityPattern: ^https://github\\.com/o/r/\\.github/workflows/w\\.yaml@r?efs/.*$\n"
        "community:\n"
        f"  - issuer: https://github.com/login/oauth\n    source: '{'a' * 32}'\n"
    ).encode()
    with pytest.raises(AllowlistInvalid):
        Allowlist.load(text)
    found = Allowlist.recall(text)
    assert [entry.source for entry in found.entries] == ["a" * 32]
    assert found.sha256 == hashlib.sha256(text).hexdigest()
    assert Allowlist.recall(b"nonsense: [").entries == ()
