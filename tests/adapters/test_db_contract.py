"""What every evidence store does, shown over the in-memory fake, SQLite and PostgreSQL."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from app.core import latest
from app.core.bundle import LogEntry, Run
from app.core.catalogue import CatalogueVersion
from app.core.coordinate import Criteria
from app.core.errors import ConflictError, InputError, NotFoundError, StoreError
from app.core.identity import GITHUB_OAUTH_ISSUER, SignerIdentity
from app.core.refs import Digest
from app.core.strangers import reduced
from app.core.verdict import ConfirmBy, ConfirmRule, RecipeInputs
from app.ports import Act, Attempt, EvidenceStore, Kept, Received, RecordFilter, Weighing
from tests.support.stored_runs import (
    DEV_ONE,
    FAIL,
    OCTOCAT,
    PASS,
    RECIPE,
    T0,
    WORKFLOW,
    at,
    hexed,
    make_run,
    outcome,
    received,
)
from tests.support.stores import KINDS, RULES, Rules, allowlist_text, open_store

OTHER = "gb200-oke-ubuntu-inference"
TWO = Weighing(ConfirmRule(), T0)
THREE = Weighing(ConfirmRule(ConfirmBy.PARTY, 3, 60), at(2))


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EvidenceStore]:
    with open_store(request.param, tmp_path) as opened:
        yield opened


def keep(store: EvidenceStore, run: Run, came: Received | None = None, rules: Rules = RULES) -> Kept:
    return store.keep(run, came or received(run), project=rules.project, classify=rules.classify)


def stranger(number: int) -> SignerIdentity:
    """Somebody whom no list has."""
    return SignerIdentity(GITHUB_OAUTH_ISSUER, f"stranger-{number}@example.org")


def inputs(store: EvidenceStore, recipe: str = RECIPE) -> RecipeInputs:
    found = store.inputs(recipe)
    assert found is not None
    return found


def state(store: EvidenceStore, recipe: str = RECIPE) -> object:
    return {line.recipe: line.verdict["state"] for line in store.summaries()}.get(recipe)


class TestKeep:
    def test_a_run_reads_back_as_it_was_written(self, store: EvidenceStore) -> None:
        run = make_run(1)
        kept = keep(store, run)
        assert kept.created
        assert kept.record.run == run
        assert kept.record.reference == f"registry.example.org/evidence@{run.digest}"
        assert (kept.record.source_class, kept.record.allowlisted, kept.record.party) == (
            "first-party",
            True,
            "github:acme-lab",
        )
        assert store.records_of(run.digest) == (kept.record,)
        assert inputs(store).runs == (run,)

    def test_how_it_was_received_is_what_counts(self, store: EvidenceStore) -> None:
        run = make_run(1, public=True, received_at=at(7))
        kept = keep(store, run, received(run, at=at(8), public=False))
        assert (kept.record.run.received_at, kept.record.run.public) == (at(8), False)

    def test_the_first_run_makes_the_recipe_known(self, store: EvidenceStore) -> None:
        assert store.inputs(RECIPE) is None
        assert store.revision(RECIPE) is None
        kept = keep(store, make_run(1, results=PASS))
        assert kept.before is None
        assert kept.after.verdict["state"] == "SINGLE"
        assert store.revision(RECIPE) == 1

    def test_a_second_signer_changes_the_state_and_the_record_says_so(self, store: EvidenceStore) -> None:
        keep(store, make_run(1, results=PASS))
        kept = keep(store, make_run(2, OCTOCAT, results=PASS))
        assert kept.before is not None
        assert (kept.before.verdict["state"], kept.after.verdict["state"]) == ("SINGLE", "CONFIRMED")
        assert kept.record.state_at_ingest == {
            "before": "SINGLE",
            "after": "CONFIRMED",
            "staleness": ["AGED", "UNKNOWN_CURRENT"],
            "commit": None,
        }

    def test_twice_is_once(self, store: EvidenceStore) -> None:
        run = make_run(1)
        first = keep(store, run)
        events = len(list(store.replay()))
        revision = store.state_revision()
        second = keep(store, run)
        assert not second.created
        assert second.record == first.record
        assert (len(list(store.replay())), store.state_revision()) == (events, revision)

    def test_a_repeat_under_a_new_signature_is_still_the_same_evidence(self, store: EvidenceStore) -> None:
        run = make_run(1)
        keep(store, run)
        signed_again = replace(
            run, signature_sha256=hexed("again"), log=LogEntry("rekor.example.org", hexed("log"), 77, 78, "dsse")
        )
        kept = keep(store, signed_again)
        assert not kept.created
        assert kept.record.run == run
        assert not store.knows(run.digest, hexed("again"))

    def test_a_stranger_who_signs_a_copy_is_a_second_record_of_the_digest(self, store: EvidenceStore) -> None:
        stranger = replace(OCTOCAT, identity="stranger@example.org")
        owner = make_run(1, results=PASS)
        copy = make_run(
            1, stranger, results=PASS, log=LogEntry("rekor.example.org", hexed("log"), 2, 3, "dsse"), logged_at=at(3)
        )
        assert keep(store, copy).created
        assert state(store) == "UNTESTED"
        assert keep(store, owner).created
        assert state(store) == "SINGLE"
        assert [record.run.source for record in store.records_of(owner.digest)] == [copy.source, owner.source]

    @pytest.mark.parametrize(
        ("second", "code"),
        [
            pytest.param(make_run(2, log=make_run(1).log), "LOG_ENTRY_REUSED", id="log-entry-of-another-bundle"),
            pytest.param(
                make_run(2, OCTOCAT, log=make_run(1).log), "LOG_ENTRY_REUSED", id="log-entry-of-another-signer"
            ),
            pytest.param(
                make_run(2, recipe=OTHER, log=make_run(1).log), "LOG_ENTRY_REUSED", id="log-entry-of-another-recipe"
            ),
            pytest.param(
                make_run(2, signature_sha256=make_run(1).signature_sha256),
                "SIGNATURE_REUSED",
                id="signature-of-another-bundle",
            ),
        ],
    )
    def test_a_signature_stands_for_one_bundle(self, store: EvidenceStore, second: Run, code: str) -> None:
        first = make_run(1)
        keep(store, first)
        before = len(list(store.replay()))
        with pytest.raises(ConflictError) as refused:
            keep(store, second)
        assert refused.value.code == code
        assert refused.value.details == {"digest": str(first.digest)}
        assert store.records_of(second.digest) == ()
        assert len(list(store.replay())) == before

    def test_the_same_index_in_another_log_is_another_entry(self, store: EvidenceStore) -> None:
        keep(store, make_run(1))
        shard = LogEntry("log2026-2.rekor.example.org", hexed("shard"), 1, 1, "hashedrekord")
        assert keep(store, make_run(2, log=shard)).created

    @pytest.mark.parametrize("field", ["recipe", "aicr_version"])
    def test_a_name_beyond_the_bound_is_refused(self, store: EvidenceStore, field: str) -> None:
        with pytest.raises(InputError) as refused:
            keep(store, make_run(1, **{field: "x" * 513}))
        assert refused.value.code == "FIELD_TOO_LONG"
        assert store.summaries() == ()

    def test_a_name_of_512_wide_characters_is_kept(self, store: EvidenceStore) -> None:
        name = "\U0001f600" * 512
        keep(store, make_run(1, recipe=name, aicr_version=name, k8s_version=name))
        assert [line.recipe for line in store.summaries()] == [name]

    def test_text_that_a_database_refuses_reads_back(self, store: EvidenceStore) -> None:
        odd = "nul \x00 escape \x1b0041 lone \ud800 low \udfff quote ' \u202e"
        run = make_run(
            1,
            results=(outcome(odd, odd, duration_ms=2**40, skip_reason=odd, runtime_source=odd),),
            aicr_version=odd,
            remarks=(odd,),
            recipe_text=odd,
            signer=replace(OCTOCAT, claims=replace(OCTOCAT.claims, run_url=odd)),
        )
        keep(store, run)
        assert inputs(store).runs == (run,)
        (record,), _ = store.records(RecordFilter(aicr_version=odd), after=None, limit=5)
        assert record.run.remarks == (odd,)

    def test_a_run_from_a_directory_has_no_location(self, store: EvidenceStore) -> None:
        run = make_run(1)
        kept = keep(store, run, received(run, reference=""))
        assert kept.record.locations == ()

    def test_the_allowlist_of_the_caller_must_be_in_force(self, store: EvidenceStore) -> None:
        store.activate_allowlist(RULES.version(T0), project=RULES.project, classify=RULES.classify)
        run = make_run(1)
        with pytest.raises(ConflictError) as refused:
            store.keep(
                run,
                received(run),
                project=RULES.project,
                classify=RULES.classify,
                allowlist_sha256=hexed("an older list"),
            )
        assert refused.value.code == "ALLOWLIST_CHANGED"
        in_force = RULES.version(T0).sha256
        kept = store.keep(run, received(run), project=RULES.project, classify=RULES.classify, allowlist_sha256=in_force)
        assert kept.created

    def test_other_weighing_rules_compute_every_recipe_anew_once(self, store: EvidenceStore) -> None:
        run = make_run(1)
        keep(store, run)
        assert store.reproject("two make it", project=RULES.project, weighing=TWO)
        before = store.revision(run.recipe)
        assert not store.reproject("two make it", project=RULES.project, weighing=replace(TWO, since=at(1)))
        assert store.revision(run.recipe) == before
        assert store.reproject("three make it", project=RULES.project, weighing=THREE)
        assert before is not None
        assert store.revision(run.recipe) == before + 1

    def test_the_settings_that_weighed_are_kept_in_their_order(self, store: EvidenceStore) -> None:
        assert store.weighings() == ()
        store.reproject("two make it", project=RULES.project, weighing=TWO)
        store.reproject("three make it", project=RULES.project, weighing=THREE)
        again = replace(TWO, since=at(9))
        store.reproject("two make it", project=RULES.project, weighing=again)
        assert store.weighings() == (TWO, THREE, again)
        told = [(event.kind, event.at, dict(event.data)) for event in store.replay()]
        assert told[:2] == [
            (
                "weighing-changed",
                T0,
                {"mark": "two make it", "confirmBy": "signer", "threshold": 2, "agedAfterDays": 30},
            ),
            (
                "weighing-changed",
                at(2),
                {"mark": "three make it", "confirmBy": "party", "threshold": 3, "agedAfterDays": 60},
            ),
        ]

    def test_a_rebuild_keeps_the_settings_that_weighed(self, store: EvidenceStore) -> None:
        store.reproject("two make it", project=RULES.project, weighing=TWO)
        store.reproject("three make it", project=RULES.project, weighing=THREE)
        store.rebuild((), project=RULES.project, classify=RULES.classify)
        assert store.weighings() == (TWO, THREE)


class TestLocations:
    def test_a_new_reference_is_added(self, store: EvidenceStore) -> None:
        run = make_run(1)
        keep(store, run)
        mirror = received(run, at=at(5), reference=f"mirror.example.org/evidence@{run.digest}", public=False)
        assert not keep(store, run, mirror).created
        (record,) = store.records_of(run.digest)
        assert [(one.reference.split("/")[0], one.public) for one in record.locations] == [
            ("registry.example.org", True),
            ("mirror.example.org", False),
        ]

    def test_a_later_sighting_moves_last_seen_only(self, store: EvidenceStore) -> None:
        run = make_run(1)
        keep(store, run)
        before = store.revision(RECIPE)
        store.add_location(run.digest, received(run, at=at(50)))
        (record,) = store.records_of(run.digest)
        (location,) = record.locations
        assert (location.first_seen, location.last_seen) == (run.received_at, at(50))
        assert store.revision(RECIPE) == (before or 0) + 1

    def test_a_sighting_within_the_hour_writes_nothing(self, store: EvidenceStore) -> None:
        run = make_run(1)
        keep(store, run)
        before = (store.records_of(run.digest), len(list(store.replay())), store.state_revision())
        store.add_location(run.digest, received(run, at=run.received_at + timedelta(minutes=59)))
        assert (store.records_of(run.digest), len(list(store.replay())), store.state_revision()) == before

    def test_once_anonymous_a_location_stays_public(self, store: EvidenceStore) -> None:
        run = make_run(1)
        keep(store, run, received(run, public=False))
        for public, hours in ((True, 2), (False, 9)):
            store.add_location(run.digest, received(run, at=at(hours), public=public))
        (record,) = store.records_of(run.digest)
        assert [one.public for one in record.locations] == [True]
        assert not record.run.public
        assert inputs(store).public == {run.digest}
        before = store.inputs(RECIPE, as_of=at(1))
        assert before is None or before.public == frozenset()

    def test_a_place_that_became_public_was_not_before(self, store: EvidenceStore) -> None:
        run = make_run(1)
        keep(store, run, received(run, at=at(2), public=False))
        store.add_location(run.digest, received(run, at=at(50), public=True))
        for hours, public in ((20, frozenset()), (60, {run.digest})):
            then = store.inputs(RECIPE, as_of=at(hours))
            assert then is not None
            assert then.public == public

    def test_a_run_that_would_be_kept_counts_as_if_it_were(self, store: EvidenceStore) -> None:
        for number in range(30):
            keep(store, make_run(number, stranger(number)))
        keep(store, make_run(40, OCTOCAT))
        for run in (make_run(50, OCTOCAT), make_run(51, stranger(2)), make_run(52, DEV_ONE), make_run(40, OCTOCAT)):
            promised = RULES.project(store.inputs_with(run))
            keep(store, run)
            assert promised == RULES.project(inputs(store))

    def test_only_what_came_in_with_credentials_is_asked_for_an_open_place(self, store: EvidenceStore) -> None:
        keep(store, make_run(1))
        run = make_run(2, OCTOCAT)
        keep(store, run, received(run, public=False))
        assert inputs(store).public == frozenset()
        store.add_location(run.digest, received(run, at=at(9), reference="mirror.example.org/e@sha256:1", public=True))
        assert inputs(store).public == {run.digest}
        then = store.inputs(RECIPE, as_of=at(8))
        assert then is not None
        assert then.public == frozenset()
        first = store.inputs(RECIPE, as_of=at(20))
        assert first is not None
        assert first.public == {run.digest}
        standing = next(one for one in RULES.project(inputs(store)).sources if one.source == OCTOCAT.slug)
        assert "not-public" not in [one.code for one in standing.remarks]

    def test_an_unknown_digest_has_no_location(self, store: EvidenceStore) -> None:
        with pytest.raises(NotFoundError):
            store.add_location(Digest(hexed("nobody's")), received(make_run(1)))


class TestInputs:
    def test_only_the_newest_run_of_a_source_and_version_is_loaded(self, store: EvidenceStore) -> None:
        for number, version in ((1, "v1.0.0"), (2, "v1.0.0"), (3, "v1.1.0"), (4, "v1.0.0")):
            keep(store, make_run(number, aicr_version=version))
        found = inputs(store)
        assert {(run.aicr_version, run.digest) for run in found.runs} == {
            ("v1.1.0", make_run(3).digest),
            ("v1.0.0", make_run(4).digest),
        }
        assert found.run_counts == {WORKFLOW.canonical_id: 4}

    def test_a_run_that_comes_late_does_not_replace_a_newer_one(self, store: EvidenceStore) -> None:
        keep(store, make_run(5, results=PASS))
        kept = keep(store, make_run(2, results=FAIL, received_at=at(9)))
        assert [run.digest for run in inputs(store).runs] == [make_run(5).digest]
        assert state(store) == "SINGLE"
        assert kept.record.latest is False
        assert kept.record.state_at_ingest["staleness"] == ["SUPERSEDED", "UNKNOWN_CURRENT"]

    def test_builds_of_one_version_are_kept_apart_by_commit(self, store: EvidenceStore) -> None:
        keep(store, make_run(1, aicr_version="main", aicr_commit="a" * 40))
        keep(store, make_run(2, aicr_version="main", aicr_commit="b" * 40))
        assert len(inputs(store).runs) == 2

    def test_equal_attestation_times_are_settled_by_log_time_and_digest(self, store: EvidenceStore) -> None:
        same = {"attested_at": T0, "logged_at": T0}
        runs = [make_run(number, **same) for number in (1, 2, 3)]
        for run in runs:
            keep(store, run)
        assert inputs(store).runs == (max(runs, key=lambda run: run.digest.hex),)
        later = make_run(4, attested_at=T0, logged_at=at(1))
        keep(store, later)
        assert inputs(store).runs == (later,)

    def test_inputs_are_the_reduction_of_all_runs(self, store: EvidenceStore) -> None:
        runs = [
            make_run(1),
            make_run(2, weightless="reusable workflow"),
            make_run(3, OCTOCAT, hardware_matched=False),
            make_run(4, OCTOCAT),
            make_run(5, DEV_ONE, criteria=Criteria("eks", "h100", "ubuntu", "training"), profile_selection="a=b"),
            make_run(6, DEV_ONE),
            make_run(7, recipe_digest=hexed("another")),
        ]
        for run in runs:
            keep(store, run)
        found = inputs(store)
        everything = RecipeInputs(recipe=RECIPE, runs=tuple(runs))
        assert found == reduced(everything, RULES.knows)
        assert store.inputs(RECIPE, strangers=True) == latest.reduced(everything)
        assert RULES.project(found) == RULES.project(RecipeInputs(recipe=RECIPE, runs=tuple(runs)))

    def test_of_a_crowd_of_strangers_only_the_newest_are_read(self, store: EvidenceStore) -> None:
        runs = [make_run(90, results=PASS), make_run(91, OCTOCAT, results=PASS)]
        runs += [make_run(number, stranger(number), results=FAIL) for number in range(30)]
        runs += [make_run(40, stranger(3), aicr_version="v1.1.0"), make_run(41, stranger(29), prints=runs[0].prints)]
        for run in runs:
            keep(store, run)
        found, whole = inputs(store), store.inputs(RECIPE, strangers=True)
        everything = RecipeInputs(recipe=RECIPE, runs=tuple(runs))
        assert whole == latest.reduced(everything)
        assert found == reduced(everything, RULES.knows)
        assert found.strangers_left_out == 5
        there = {run.source for run in found.runs}
        assert {stranger(3).slug, stranger(29).slug} < there
        assert not {stranger(number).slug for number in (0, 1, 2, 4, 5)} & there
        assert RULES.project(found) == RULES.project(whole) == RULES.project(everything)
        assert state(store) == "CONFIRMED"
        then = store.inputs(RECIPE, as_of=at(35))
        assert then == reduced(RecipeInputs(recipe=RECIPE, runs=tuple(runs[2:-2])), RULES.knows)
        assert then.strangers_left_out == 5

    def test_a_stranger_that_a_list_takes_in_is_read_whole_from_then_on(self, store: EvidenceStore) -> None:
        """What it showed and claimed before it was known counts as if it had been listed from the start."""
        store.activate_allowlist(RULES.version(T0), project=RULES.project, classify=RULES.classify)
        first = make_run(1, stranger(0), results=PASS)
        runs = [first, make_run(2, stranger(0), results=PASS), make_run(50, OCTOCAT, results=PASS, prints=first.prints)]
        runs += [make_run(number, stranger(number), results=FAIL) for number in range(3, 33)]
        for run in runs:
            keep(store, run)
        assert stranger(0).slug not in {run.source for run in inputs(store).runs}
        wide = Rules(allowlist_text(OCTOCAT, DEV_ONE, stranger(0)), earlier=[RULES])
        store.activate_allowlist(wide.version(at(60)), project=wide.project, classify=wide.classify)
        everything = RecipeInputs(recipe=RECIPE, runs=tuple(runs))
        assert inputs(store) == reduced(everything, wide.knows)
        verdict = wide.project(inputs(store))
        assert verdict == wide.project(everything)
        assert (verdict.state, verdict.confirming) == ("SINGLE", 1)
        narrow = Rules(allowlist_text(OCTOCAT, DEV_ONE), earlier=[RULES, wide])
        store.activate_allowlist(narrow.version(at(61)), project=narrow.project, classify=narrow.classify)
        assert stranger(0).slug in {run.source for run in inputs(store).runs}

    def test_a_strangers_print_refreshes_no_other_recipe(self, store: EvidenceStore) -> None:
        original = make_run(5)
        keep(store, original)
        revision = store.revision(RECIPE)
        keep(store, make_run(2, stranger(1), recipe=OTHER, prints=original.prints))
        assert store.revision(RECIPE) == revision
        assert {seen.identity for seen in inputs(store).sightings} == {WORKFLOW.identity}

    def test_a_copied_run_refreshes_the_recipe_that_it_was_copied_from(self, store: EvidenceStore) -> None:
        original = make_run(5)
        keep(store, original)
        revision = store.revision(RECIPE)
        copy = make_run(2, OCTOCAT, recipe=OTHER, prints=original.prints)
        keep(store, copy)
        assert store.revision(RECIPE) == (revision or 0) + 1
        print_kinds = {(seen.kind, seen.identity, seen.digest) for seen in inputs(store).sightings}
        assert print_kinds == {
            (kind, signer.identity, run.digest)
            for kind in ("ctrf", "snapshot")
            for signer, run in ((WORKFLOW, original), (OCTOCAT, copy))
        }

    def test_an_unrelated_recipe_is_left_alone(self, store: EvidenceStore) -> None:
        keep(store, make_run(1))
        revision = store.revision(RECIPE)
        total = store.state_revision()
        keep(store, make_run(2, recipe=OTHER))
        assert store.revision(RECIPE) == revision
        assert store.state_revision() == total + 1

    def test_as_of_knows_what_was_received_by_then(self, store: EvidenceStore) -> None:
        keep(store, make_run(1, attested_at=at(30), received_at=at(40)))
        keep(store, make_run(2, attested_at=at(10), received_at=at(60)))
        early = make_run(3, OCTOCAT, received_at=at(20))
        keep(store, early)
        assert store.inputs(RECIPE, as_of=at(19)) is None
        then = store.inputs(RECIPE, as_of=at(20))
        assert then is not None
        assert then.runs == (early,)
        assert (then.run_counts, [claim.identity for claim in then.claims]) == (
            {OCTOCAT.canonical_id: 1},
            [OCTOCAT.identity],
        )
        assert {seen.identity for seen in then.sightings} == {OCTOCAT.identity}
        assert store.inputs(RECIPE, as_of=at(60)) == inputs(store)


class TestCatalogue:
    def version(self, name: str = RECIPE, *, hours: float = 1, **changes: object) -> CatalogueVersion:
        base = CatalogueVersion(
            recipe=name,
            legacy=hexed(f"legacy {name}"),
            content_only=hexed("recipe"),
            recorded_at=at(hours),
            commit="c0ffee",
            ref="refs/heads/main",
            at=at(0.5),
            declared=(("deployment", "operator-health"),),
            floors={"k8s": "1.32"},
            text=f"name: {name}\n",
            criteria=Criteria("eks", "h100", "ubuntu", "training", "kubeflow"),
        )
        return replace(base, **changes)  # type: ignore[arg-type]

    def put(self, store: EvidenceStore, *versions: CatalogueVersion, replace: bool = False) -> tuple[str, ...]:
        return store.put_catalogue(versions, replace=replace, project=RULES.project)

    def test_a_recipe_without_evidence_is_known(self, store: EvidenceStore) -> None:
        assert self.put(store, self.version()) == (RECIPE,)
        assert state(store) == "UNTESTED"
        (kept,) = inputs(store).catalogue
        assert replace(kept, seq=0) == self.version()
        assert kept.seq == 1

    @pytest.mark.parametrize(
        ("change", "appended"),
        [
            pytest.param({}, False, id="nothing"),
            pytest.param({"ref": "refs/heads/other", "at": at(7)}, False, id="ref-and-time-only"),
            pytest.param(
                {"commit": "", "declared": None, "floors": None, "text": "", "criteria": None}, False, id="silence"
            ),
            pytest.param({"content_only": hexed("changed")}, True, id="digest"),
            pytest.param({"commit": "beef"}, True, id="commit"),
            pytest.param({"declared": ()}, True, id="declared-checks"),
            pytest.param({"floors": {"k8s": "1.33"}}, True, id="floors"),
            pytest.param({"floors": {}}, True, id="no-floors"),
        ],
    )
    def test_only_news_are_appended(self, store: EvidenceStore, change: dict[str, object], *, appended: bool) -> None:
        self.put(store, self.version())
        changed = self.put(store, self.version(hours=2, **change))
        assert changed == ((RECIPE,) if appended else ())
        assert len(inputs(store).catalogue) == 1 + appended

    def test_only_the_newest_version_carries_its_text(self, store: EvidenceStore) -> None:
        self.put(store, self.version(text="old"))
        self.put(store, self.version(hours=2, content_only=hexed("changed"), text="new"))
        assert [version.text for version in inputs(store).catalogue] == ["", "new"]

    def test_a_bulk_push_merges_and_a_replacing_one_retires_the_absent(self, store: EvidenceStore) -> None:
        self.put(store, self.version(), self.version(OTHER))
        assert self.put(store, self.version("third", hours=2)) == ("third",)
        assert self.put(store, self.version(hours=3), replace=True) == (OTHER, "third")
        retired = inputs(store, OTHER).catalogue[-1]
        assert (retired.retired, retired.recorded_at, retired.text) == (True, at(3), f"name: {OTHER}\n")
        assert self.put(store, self.version(OTHER, hours=4)) == (OTHER,)
        assert [version.retired for version in inputs(store, OTHER).catalogue] == [False, True, False]

    def test_an_empty_push_retires_nobody(self, store: EvidenceStore) -> None:
        self.put(store, self.version())
        with pytest.raises(InputError):
            self.put(store, replace=True)
        assert inputs(store).catalogue[-1].retired is False

    def test_a_push_changes_the_verdict_of_stored_evidence(self, store: EvidenceStore) -> None:
        kept = keep(store, make_run(1, results=PASS))
        assert kept.after.verdict["currentState"] is None
        self.put(store, self.version())
        (line,) = store.summaries()
        assert line.verdict["currentState"] == "SINGLE"
        later = keep(store, make_run(2, OCTOCAT, results=PASS))
        assert later.record.state_at_ingest["commit"] == "c0ffee"

    def test_as_of_sees_the_versions_of_then(self, store: EvidenceStore) -> None:
        self.put(store, self.version(hours=2))
        self.put(store, self.version(hours=5, content_only=hexed("changed")))
        assert store.inputs(RECIPE, as_of=at(1)) is None
        then = store.inputs(RECIPE, as_of=at(3))
        assert then is not None
        assert [version.content_only for version in then.catalogue] == [hexed("recipe")]


class TestAllowlist:
    def test_a_change_reclassifies_everything(self, store: EvidenceStore) -> None:
        narrow = Rules(allowlist_text(), earlier=[RULES])
        assert store.activate_allowlist(RULES.version(T0), project=RULES.project, classify=RULES.classify)
        keep(store, make_run(1, results=PASS))
        keep(store, make_run(2, OCTOCAT, results=PASS))
        assert state(store) == "CONFIRMED"
        assert store.activate_allowlist(narrow.version(at(9)), project=narrow.project, classify=narrow.classify)
        assert state(store) == "SINGLE"
        found = store.source(OCTOCAT.slug)
        assert found is not None
        assert (found.source_class, found.allowlisted) == ("community", False)

    def test_nothing_is_computed_by_a_list_that_another_one_replaced(self, store: EvidenceStore) -> None:
        """A push, a start or an act of a process that did not hear yet would bring back whom the new list dropped."""
        run, narrow = make_run(2, OCTOCAT, results=PASS), Rules(allowlist_text(), earlier=[RULES])
        store.activate_allowlist(RULES.version(T0), project=RULES.project, classify=RULES.classify)
        keep(store, run)
        store.activate_allowlist(narrow.version(at(9)), project=narrow.project, classify=narrow.classify)
        version = CatalogueVersion(RECIPE, hexed("legacy"), hexed("recipe"), at(10), text="name: x\n")
        late = {"project": RULES.project, "allowlist_sha256": RULES.version(T0).sha256}
        for write in (
            lambda: store.put_catalogue([version], replace=False, **late),
            lambda: store.reproject("late", weighing=Weighing(ConfirmRule(), at(10)), **late),
            lambda: store.retract(run.digest, run.source_id, Act(at(10), "ada", "because"), retracted=True, **late),
            lambda: store.set_gone(run.digest, at(10), gone=True, **late),
        ):
            with pytest.raises(ConflictError) as caught:
                write()
            assert caught.value.code == "ALLOWLIST_CHANGED"
        assert state(store) == "UNTESTED"
        in_time = {"project": narrow.project, "allowlist_sha256": narrow.version(T0).sha256}
        assert store.put_catalogue([version], replace=False, **in_time) == (RECIPE,)

    def test_versions_are_kept_in_order_and_an_unchanged_one_is_no_version(self, store: EvidenceStore) -> None:
        narrow = Rules(allowlist_text(), earlier=[RULES])
        for rules, hours, news in ((RULES, 0, True), (RULES, 1, False), (narrow, 2, True), (RULES, 3, True)):
            assert news == store.activate_allowlist(
                rules.version(at(hours)), project=rules.project, classify=rules.classify
            )
        assert [(one.text, one.since) for one in store.allowlists()] == [
            (RULES.text, at(0)),
            (narrow.text, at(2)),
            (RULES.text, at(3)),
        ]

    def test_a_sha256_that_is_not_of_the_text_is_refused(self, store: EvidenceStore) -> None:
        wrong = replace(RULES.version(T0), sha256=hexed("other"))
        with pytest.raises(InputError):
            store.activate_allowlist(wrong, project=RULES.project, classify=RULES.classify)
        assert store.allowlists() == ()


class TestActs:
    ACT = Act(at(20), "ada", "wrong cluster")

    def retract(self, store: EvidenceStore, run: Run, *, retracted: bool, act: Act = ACT) -> bool:
        return store.retract(run.digest, run.source_id, act, retracted=retracted, project=RULES.project)

    def test_a_retraction_takes_the_pass_away_and_comes_back(self, store: EvidenceStore) -> None:
        run, other = make_run(1, results=PASS), make_run(2, OCTOCAT, results=PASS)
        keep(store, run)
        keep(store, other)
        assert self.retract(store, other, retracted=True)
        assert not self.retract(store, other, retracted=True)
        assert state(store) == "SINGLE"
        found = inputs(store)
        assert found.retracted == {(other.digest, other.source_id): "wrong cluster"}
        assert {claim.identity for claim in found.claims} == {WORKFLOW.identity, OCTOCAT.identity}
        assert len(store.records_of(other.digest)) == 1
        assert self.retract(store, other, retracted=False, act=Act(at(30), "ada", "a mistake"))
        assert state(store) == "CONFIRMED"
        then = store.inputs(RECIPE, as_of=at(25))
        assert then is not None
        assert then.retracted == {(other.digest, other.source_id): "wrong cluster"}

    def test_a_bundle_is_gone_until_it_is_found(self, store: EvidenceStore) -> None:
        run = make_run(1)
        keep(store, run)
        assert store.set_gone(run.digest, at(20), gone=True, project=RULES.project)
        assert inputs(store).gone == {run.digest}
        assert not store.set_gone(run.digest, at(21), gone=True, project=RULES.project)
        assert store.set_gone(run.digest, at(22), gone=False, project=RULES.project)
        assert inputs(store).gone == frozenset()
        then = store.inputs(RECIPE, as_of=at(21))
        assert then is not None
        assert then.gone == {run.digest}

    def test_nothing_can_be_said_about_unknown_evidence(self, store: EvidenceStore) -> None:
        with pytest.raises(NotFoundError):
            self.retract(store, make_run(1), retracted=True)
        with pytest.raises(NotFoundError):
            store.set_gone(make_run(1).digest, at(1), gone=True, project=RULES.project)


class TestLists:
    @pytest.mark.parametrize(
        ("where", "numbers"),
        [
            pytest.param(RecordFilter(), [4, 3, 2, 1], id="all-newest-first"),
            pytest.param(RecordFilter(digest=str(make_run(2).digest)), [2], id="digest"),
            pytest.param(RecordFilter(recipe=OTHER), [3], id="recipe"),
            pytest.param(RecordFilter(source=OCTOCAT.slug), [4, 2], id="slug"),
            pytest.param(RecordFilter(source=OCTOCAT.canonical_id), [4, 2], id="canonical-id"),
            pytest.param(RecordFilter(source=OCTOCAT.slug.upper()), [], id="slug-in-capitals"),
            pytest.param(RecordFilter(party="github:octocat"), [4, 2], id="party"),
            pytest.param(RecordFilter(party="github:o…t"), [4, 2], id="party-as-it-is-shown"),
            pytest.param(RecordFilter(party="github:oct_c…"), [], id="party-that-looks-like-a-pattern"),
            pytest.param(RecordFilter(party="github:%"), [], id="party-that-is-a-pattern"),
            pytest.param(RecordFilter(source_class="first-party"), [3, 1], id="class"),
            pytest.param(RecordFilter(predicate_type="https://aicr.run/x"), [4], id="predicate-type"),
            pytest.param(RecordFilter(aicr_version="v1.1.0"), [3], id="aicr-version"),
            pytest.param(RecordFilter(k8s="1.30"), [1], id="k8s"),
            pytest.param(RecordFilter(k8s="v1.30.1"), [1], id="k8s by its minor version"),
            pytest.param(RecordFilter(outcome="failed"), [2], id="failed"),
            pytest.param(RecordFilter(outcome="passed", recipe=RECIPE), [4, 1], id="passed-of-one-recipe"),
            pytest.param(RecordFilter(since=at(3), until=at(5)), [3, 2], id="received-between"),
        ],
    )
    def test_records_are_filtered(self, store: EvidenceStore, where: RecordFilter, numbers: list[int]) -> None:
        for run in (
            make_run(1, k8s_version="v1.30.5-eks-a3a0722"),
            make_run(2, OCTOCAT, exit=1),
            make_run(3, recipe=OTHER, aicr_version="v1.1.0"),
            make_run(4, OCTOCAT, predicate_type="https://aicr.run/x"),
        ):
            keep(store, run)
        found, following = store.records(where, after=None, limit=10)
        assert [record.run.log.index for record in found] == numbers
        assert following is None

    def test_lists_are_light(self, store: EvidenceStore) -> None:
        run = make_run(1)
        keep(store, run)
        (record,), _ = store.records(RecordFilter(), after=None, limit=1)
        assert record.run == replace(run, results=(), figures=(), recipe_text="")

    def test_pages_cover_everything_once_while_records_come_in(self, store: EvidenceStore) -> None:
        for number in range(1, 6):
            keep(store, make_run(number))
        first, following = store.records(RecordFilter(), after=None, limit=2)
        keep(store, make_run(6))
        second, following = store.records(RecordFilter(), after=following, limit=2)
        third, end = store.records(RecordFilter(), after=following, limit=2)
        assert [record.run.log.index for record in (*first, *second, *third)] == [5, 4, 3, 2, 1]
        assert end is None

    def test_a_full_last_page_has_no_next(self, store: EvidenceStore) -> None:
        for number in (1, 2):
            keep(store, make_run(number))
        assert store.records(RecordFilter(), after=None, limit=2)[1] is None

    def test_history_is_newest_attestation_first(self, store: EvidenceStore) -> None:
        runs = [make_run(1), make_run(3, OCTOCAT), make_run(2)]
        for run in runs:
            keep(store, run)
        assert store.runs_of(RECIPE) == (runs[1], runs[2], runs[0])
        assert store.runs_of(RECIPE, limit=1) == (runs[1],)
        assert store.runs_of(RECIPE, as_of=runs[2].received_at) == (runs[2], runs[0])

    def test_sources_say_what_they_brought(self, store: EvidenceStore) -> None:
        keep(store, make_run(1))
        keep(store, make_run(2, recipe=OTHER))
        keep(store, make_run(3, DEV_ONE))
        first, following = store.sources(after=None, limit=1)
        second, end = store.sources(after=following, limit=1)
        found = {one.identity: one for one in (*first, *second)}
        assert end is None
        assert list(found) == sorted(found, key=lambda identity: found[identity].source_id)
        workflow = found[WORKFLOW.identity]
        assert (workflow.records, workflow.recipes) == (2, tuple(sorted((OTHER, RECIPE))))
        assert (workflow.first_seen, workflow.last_seen) == (at(2), at(3))
        assert store.source(DEV_ONE.canonical_id) == found[DEV_ONE.identity]
        assert store.source("0" * 32) is None

    def test_a_source_is_asked_what_it_holds(self, store: EvidenceStore) -> None:
        keep(store, make_run(1))
        keep(store, make_run(2, weightless="called from elsewhere"))
        keep(store, make_run(3, OCTOCAT))
        assert store.holds(make_run(1).digest, WORKFLOW.canonical_id)
        assert not store.holds(make_run(1).digest, OCTOCAT.canonical_id)
        assert [store.held_by(signer.canonical_id) for signer in (WORKFLOW, OCTOCAT, DEV_ONE)] == [2, 1, 0]
        assert store.held_by(WORKFLOW.canonical_id, weightless_only=True) == 1

    def test_a_record_is_found_by_its_signature(self, store: EvidenceStore) -> None:
        run = make_run(1)
        record = keep(store, run).record
        assert store.find_by_signature(run.digest, run.signature_sha256) == record
        assert store.find_by_signature(make_run(2).digest, run.signature_sha256) is None
        assert store.knows(run.digest, run.signature_sha256)
        assert not store.knows(make_run(2).digest, run.signature_sha256)


class TestAttempts:
    def attempt(self, *, hours: float = 0, **changes: object) -> Attempt:
        base = Attempt(
            id=0,
            reference="registry.example.org/evidence@sha256:1",
            digest=f"sha256:{hexed('x')}",
            outcome="refused",
            step="signature-verify",
            code="S5_BASE64",
            cause={"class": "signature", "detail": "expected canonical base64"},
            first_at=at(hours),
            last_at=at(hours),
            count=1,
            source="",
            recipe="",
        )
        return replace(base, **changes)  # type: ignore[arg-type]

    def test_repeats_raise_a_counter(self, store: EvidenceStore) -> None:
        first = store.record_attempt(self.attempt())
        again = store.record_attempt(self.attempt(hours=3, reference="mirror.example.org/evidence@sha256:1"))
        assert again == replace(first, count=2, last_at=at(3), reference="mirror.example.org/evidence@sha256:1")
        assert store.attempt(first.id) == again
        assert store.attempts(after=None, limit=5) == ((again,), None)

    @pytest.mark.parametrize(
        "change",
        [
            pytest.param({"code": "S6"}, id="code"),
            pytest.param({"digest": f"sha256:{hexed('y')}"}, id="digest"),
            pytest.param({"outcome": "no-verdict"}, id="outcome"),
        ],
    )
    def test_another_kind_of_attempt_is_a_line_of_its_own(
        self, store: EvidenceStore, change: dict[str, object]
    ) -> None:
        store.record_attempt(self.attempt())
        other = store.record_attempt(self.attempt(**change))
        assert other.count == 1
        assert len(store.attempts(after=None, limit=5)[0]) == 2

    def test_attempts_without_a_digest_are_told_apart_by_reference(self, store: EvidenceStore) -> None:
        for reference in ("a.example.org/x:1", "b.example.org/x:1", "a.example.org/x:1"):
            store.record_attempt(self.attempt(digest="", reference=reference))
        assert [(a.reference, a.count) for a in store.attempts(after=None, limit=5)[0]] == [
            ("b.example.org/x:1", 1),
            ("a.example.org/x:1", 2),
        ]

    def test_accepted_attempts_are_told_apart_by_source(self, store: EvidenceStore) -> None:
        for source in ("a" * 32, "b" * 32):
            store.record_attempt(self.attempt(outcome="accepted", code="STORED", source=source))
        assert len(store.attempts(after=None, limit=5, outcome="accepted")[0]) == 2

    def test_pages_and_filters(self, store: EvidenceStore) -> None:
        made = [store.record_attempt(self.attempt(code=f"C{number}")) for number in range(3)]
        first, following = store.attempts(after=None, limit=2)
        second, end = store.attempts(after=following, limit=2)
        assert [a.id for a in (*first, *second)] == [a.id for a in reversed(made)]
        assert end is None
        assert store.attempts(after=None, limit=5, outcome="accepted") == ((), None)
        assert len(store.attempts(after=None, limit=5, digest=f"sha256:{hexed('x')}")[0]) == 3
        assert store.attempt(10_000) is None

    def test_old_attempts_are_forgotten(self, store: EvidenceStore) -> None:
        store.record_attempt(self.attempt(code="OLD"))
        store.record_attempt(self.attempt(code="NEW", hours=10))
        assert store.prune_attempts(at(10)) == 1
        assert [a.code for a in store.attempts(after=None, limit=5)[0]] == ["NEW"]


class TestLeases:
    DIGEST = Digest(hexed("leased"))

    def test_one_holder_at_a_time(self, store: EvidenceStore) -> None:
        assert store.lease(self.DIGEST, "one", now=T0, seconds=60)
        assert not store.lease(self.DIGEST, "two", now=T0, seconds=60)
        assert store.lease(self.DIGEST, "one", now=at(0.01), seconds=60)
        store.release(self.DIGEST, "two")
        assert not store.lease(self.DIGEST, "two", now=at(0.01), seconds=60)
        store.release(self.DIGEST, "one")
        assert store.lease(self.DIGEST, "two", now=at(0.01), seconds=60)

    def test_an_expired_lease_is_free(self, store: EvidenceStore) -> None:
        store.lease(self.DIGEST, "dead", now=T0, seconds=60)
        assert not store.lease(self.DIGEST, "next", now=T0 + timedelta(seconds=59), seconds=60)
        assert store.lease(self.DIGEST, "next", now=T0 + timedelta(seconds=60), seconds=60)
        store.release(self.DIGEST, "dead")
        assert not store.lease(self.DIGEST, "third", now=T0 + timedelta(seconds=61), seconds=60)


class TestEvents:
    def test_acknowledged_evidence_carries_how_it_came(self, store: EvidenceStore) -> None:
        pointer = b"schemaVersion: 1.0.0\n\xff\x00"
        run = make_run(1)
        came = received(run, public=False, pointer=pointer)
        keep(store, run, came)
        (seen,) = store.acknowledged()
        assert (seen.digest, seen.source_id, seen.signature_sha256) == (run.digest, run.source_id, run.signature_sha256)
        assert seen.received == came

    def test_events_are_in_order_and_texts_can_be_read(self, store: EvidenceStore) -> None:
        store.activate_allowlist(RULES.version(T0), project=RULES.project, classify=RULES.classify)
        keep(store, make_run(1))
        store.add_location(make_run(1).digest, received(make_run(1), at=at(90)))
        found = list(store.replay())
        assert [(event.seq, event.kind) for event in found] == [
            (1, "allowlist-activated"),
            (2, "evidence-received"),
            (3, "location-seen"),
        ]
        assert store.text(str(found[0].data["text"])) == RULES.text
        with pytest.raises(NotFoundError):
            store.text(hexed("no such text"))

    def test_a_missing_bundle_stops_a_rebuild_and_changes_nothing(self, store: EvidenceStore) -> None:
        runs = [make_run(1, results=PASS), make_run(2, OCTOCAT, results=PASS)]
        for run in runs:
            keep(store, run)
        before = (inputs(store), store.summaries())
        with pytest.raises(StoreError) as refused:
            store.rebuild([(runs[0], received(runs[0]))], project=RULES.project, classify=RULES.classify)
        assert refused.value.code == "ARCHIVE_INCOMPLETE"
        assert (inputs(store), store.summaries()) == before
        kept = store.rebuild(
            [(runs[0], received(runs[0]))], project=RULES.project, classify=RULES.classify, allow_missing=True
        )
        assert kept == 1
        assert state(store) == "SINGLE"

    def test_an_orphan_of_the_archive_is_not_evidence(self, store: EvidenceStore) -> None:
        known, orphan = make_run(1), make_run(2)
        keep(store, known)
        runs = [(orphan, received(orphan)), (known, received(known))]
        assert store.rebuild(runs, project=RULES.project, classify=RULES.classify) == 1
        assert store.records_of(orphan.digest) == ()

    def test_the_store_answers(self, store: EvidenceStore) -> None:
        store.ping()
