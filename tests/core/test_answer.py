"""Answers: criteria, fingerprints and snapshots against the catalogue."""

import pytest

from app.core.answer import (
    MAX_MATCHES,
    MAX_NEAREST,
    Backing,
    Candidate,
    Difference,
    answer,
    candidate_of,
    command_of,
    config_of,
)
from app.core.asked import Asked, accelerator_of, asked_by_criteria, asked_by_document
from app.core.catalogue import CatalogueVersion
from app.core.coordinate import Criteria
from app.core.errors import DocumentInvalid, RecipeInvalid
from app.core.identity import SignerIdentity
from app.core.summary import summarize
from app.core.verdict import State
from app.core.yamltext import load_text
from tests.support.runs import CRITERIA, OLDER, make_run, person, verdict_of, version


def candidate(
    recipe: str,
    values: str,
    state: State = State.CONFIRMED,
    *,
    current: State | None = None,
    selection: str = "",
    passes: int = 2,
    backing: Backing = Backing.CATALOGUE,
    staleness: tuple[str, ...] = (),
) -> Candidate:
    service, accelerator, os, intent, platform = (
        part.replace("-", "") if part == "-" else part for part in values.split()
    )
    criteria = Criteria(service, accelerator, os, intent, platform)
    return Candidate(recipe, criteria, selection, state, current, passes, 2, backing, staleness)


EKS = candidate("h100-eks", "eks h100 ubuntu training kubeflow")
GKE = candidate("h100-gke", "gke h100 cos training kubeflow")
B200 = candidate("b200-eks", "eks b200 ubuntu training kubeflow", State.SINGLE, passes=1)
BARE = candidate("h100-eks-bare", "eks h100 ubuntu training -")
ALL = (EKS, GKE, B200, BARE)


def ask(text: str) -> Asked:
    return asked_by_criteria(dict(part.split("=", 1) for part in text.split()))


EXACT = "service=eks accelerator=h100 os=ubuntu intent=training platform=kubeflow"


def test_an_exact_recipe_is_the_answer() -> None:
    found = answer(ask(EXACT), ALL)
    assert found.state is State.CONFIRMED
    assert found.sentence == "h100-eks is CONFIRMED, 2 of 2"
    assert [one.candidate.recipe for one in found.matches] == ["h100-eks", "h100-eks-bare"]
    assert found.matches[0].differs == ()
    assert found.matches[1].general == ("platform",)


def test_the_nearest_recipes_say_exactly_what_differs() -> None:
    found = answer(ask(EXACT.replace("h100", "h200")), ALL)
    assert found.state is None
    assert found.matches == ()
    assert found.nearest[0].differs == (Difference("accelerator", "h200", "h100"),)
    assert found.sentence == (
        "no recipe is for exactly this; the nearest is h100-eks (CONFIRMED, 2 of 2), where accelerator is h100"
        " instead of h200"
    )
    assert [one.candidate.recipe for one in found.nearest] == ["h100-eks", "b200-eks", "h100-eks-bare", "h100-gke"]
    assert found.nearest[3].differs == (
        Difference("service", "eks", "gke"),
        Difference("accelerator", "h200", "h100"),
        Difference("os", "ubuntu", "cos"),
    )


def test_hardware_is_the_farthest_difference() -> None:
    found = answer(ask("service=eks accelerator=b200 os=cos intent=training platform=kubeflow"), (EKS, GKE, B200))
    assert [one.candidate.recipe for one in found.nearest] == ["b200-eks", "h100-eks", "h100-gke"]


def test_what_was_not_said_is_asked_for() -> None:
    found = answer(ask("service=eks accelerator=h100"), ALL)
    assert found.sentence == ("h100-eks-bare is CONFIRMED, 2 of 2; 2 recipes fit, say os and intent to be exact")
    assert found.matches[1].unsaid == ("os", "intent", "platform")


def test_todays_state_is_what_counts() -> None:
    stale = candidate("h100-eks", "eks h100 ubuntu training kubeflow", current=State.SINGLE, passes=1)
    found = answer(ask(EXACT), [stale])
    assert found.state is State.SINGLE
    assert found.sentence == "h100-eks is SINGLE, 1 of 2 for today's recipe (CONFIRMED for whatever was attested)"


def test_a_profile_is_a_dimension() -> None:
    managed = candidate("p", "aks h100 ubuntu training -", selection="gpuStack=operator-managed")
    asked = ask("service=aks accelerator=h100 os=ubuntu intent=training profile=gpuStack=azure-managed")
    found = answer(asked, [managed])
    assert found.nearest[0].differs == (Difference("profile", "gpuStack=azure-managed", "gpuStack=operator-managed"),)
    assert answer(ask("service=aks accelerator=h100 os=ubuntu intent=training"), [managed]).matches[0].unsaid == (
        "profile",
    )


@pytest.mark.parametrize("text", ["service=eks accelerator=none", "", "intent=training", EXACT])
def test_no_answer_is_empty_while_a_recipe_is_known(text: str) -> None:
    found = answer(ask(text), ALL)
    assert found.sentence
    assert found.matches or found.nearest


def test_without_recipes_the_answer_says_what_to_do() -> None:
    assert answer(ask(EXACT), []).sentence == (
        "no recipe is known here by its criteria yet: push the resolved recipes or submit evidence"
    )


def test_few_nearest_ones_and_always_the_same() -> None:
    many = [candidate(f"r{index:02}", "gke a100 cos inference nim") for index in range(20)]
    found = answer(ask(EXACT), reversed(many))
    assert [one.candidate.recipe for one in found.nearest] == [f"r{index:02}" for index in range(MAX_NEAREST)]


def test_among_equals_the_better_state_is_nearer() -> None:
    worse = candidate("a", "eks h100 ubuntu training nim", State.FAILING, passes=0)
    better = candidate("b", "eks h100 ubuntu training slurm", State.SINGLE, passes=1)
    assert [one.candidate.recipe for one in answer(ask(EXACT), [worse, better]).nearest] == ["b", "a"]


def stranger(recipe: str, values: str) -> Candidate:
    return candidate(recipe, values, State.UNTESTED, passes=0, backing=Backing.NONE)


def test_what_strangers_made_up_pushes_out_no_backed_recipe() -> None:
    junk = [stranger(f"junk{index}", f"eks h100 ubuntu training junk{index}") for index in range(50)]
    rhel = candidate("h100-rhel", "eks h100 rhel training kubeflow", backing=Backing.EVIDENCE)
    found = answer(ask(EXACT), [*junk, stranger("same", "eks h100 ubuntu training kubeflow"), rhel])
    assert [one.candidate.recipe for one in found.nearest] == ["h100-rhel"]
    assert (found.state, found.matches, found.unbacked) == (None, (), 1)
    assert found.sentence == (
        "no recipe is for exactly this; the nearest is h100-rhel (CONFIRMED, 2 of 2), where os is rhel instead of"
        " ubuntu; no catalogue says what today's recipe is"
    )


def test_a_crowd_of_fitting_recipes_is_cut_and_counted() -> None:
    crowd = [stranger(f"x{index:04}", f"eks h100 ubuntu training j{index:04}") for index in range(300)]
    found = answer(ask("service=eks accelerator=h100"), crowd)
    assert [one.candidate.recipe for one in found.matches] == [f"x{index:04}" for index in range(MAX_MATCHES)]
    assert (found.more, found.unbacked) == (280, 0)
    assert found.sentence == (
        "x0000 is UNTESTED, 0 of 2; neither the catalogue nor a listed source backs it; 300 recipes fit, say os, intent"
        " and platform to be exact"
    )


def test_strangers_recipes_are_shown_where_nothing_else_is_known() -> None:
    found = answer(ask(EXACT), [stranger("only", "gke h100 cos training kubeflow")])
    assert [one.candidate.recipe for one in found.nearest] == ["only"]
    assert found.sentence.endswith("; neither the catalogue nor a listed source backs it")


def test_a_retired_recipe_is_named_and_confirms_nothing() -> None:
    retired = candidate("h100-old", "eks h100 ubuntu training kubeflow", backing=Backing.RETIRED)
    found = answer(ask(EXACT), [retired, GKE])
    assert (found.state, found.matches, found.retired) == (None, (), ("h100-old",))
    assert found.sentence == (
        "no recipe is for exactly this any more (the catalogue retired h100-old); the nearest is h100-gke"
        " (CONFIRMED, 2 of 2), where service is gke instead of eks, os is cos instead of ubuntu"
    )


def test_where_only_a_retired_recipe_is_known_it_is_told_as_one() -> None:
    retired = candidate(
        "h100-old", "eks h100 ubuntu training kubeflow", backing=Backing.RETIRED, staleness=("UNKNOWN_CURRENT", "AGED")
    )
    found = answer(ask(EXACT), [stranger("junk", "eks h100 ubuntu training kubeflow"), retired])
    assert found.state is None
    assert [one.candidate.recipe for one in found.matches] == ["h100-old", "junk"]
    assert found.sentence == (
        "h100-old was CONFIRMED, 2 of 2; the catalogue retired it; not all of its evidence is current: AGED"
    )


@pytest.mark.parametrize(
    ("backing", "staleness", "caveat"),
    [
        pytest.param(Backing.CATALOGUE, (), "", id="nothing"),
        pytest.param(
            Backing.EVIDENCE, ("UNKNOWN_CURRENT",), "; no catalogue says what today's recipe is", id="no-catalogue"
        ),
        pytest.param(
            Backing.CATALOGUE,
            ("DRIFTED", "AGED"),
            "; not all of its evidence is current: DRIFTED and AGED",
            id="stale",
        ),
    ],
)
def test_what_a_state_alone_hides_is_said(backing: Backing, staleness: tuple[str, ...], caveat: str) -> None:
    one = candidate("h100-eks", "eks h100 ubuntu training kubeflow", backing=backing, staleness=staleness)
    assert answer(ask(EXACT), [one]).sentence == f"h100-eks is CONFIRMED, 2 of 2{caveat}"


@pytest.mark.parametrize(
    "values",
    [
        pytest.param("EKS H100 Ubuntu TRAINING Kubeflow", id="capitals"),
        pytest.param("eks h100 ubuntu training kubeflow", id="plain"),
    ],
)
def test_a_recipe_is_found_however_it_spells_its_criteria(values: str) -> None:
    found = answer(ask(EXACT), [candidate("r", values)])
    assert found.sentence == "r is CONFIRMED, 2 of 2"


def test_a_recipes_alias_is_what_it_stands_for() -> None:
    found = answer(ask("service=eks accelerator=h100 os=amazonlinux"), [candidate("r", "eks h100 AL2023 training -")])
    assert [one.candidate.recipe for one in found.matches] == ["r"]


def test_a_profile_is_found_whatever_its_capitals() -> None:
    managed = candidate("p", "aks h100 ubuntu training -", selection="gpuStack=azure-managed")
    asked = ask("service=aks accelerator=h100 os=ubuntu intent=training profile=gpustack=Azure-Managed")
    assert answer(asked, [managed]).matches[0].unsaid == ()


@pytest.mark.parametrize(
    ("values", "selection", "command"),
    [
        (
            "eks h100 ubuntu training kubeflow",
            "",
            "aicr recipe --service eks --accelerator h100 --os ubuntu --intent training --platform kubeflow",
        ),
        ("kind h100 any training -", "", "aicr recipe --service kind --accelerator h100 --os any --intent training"),
        (
            "aks h100 ubuntu training -",
            "gpuStack=operator-managed",
            (
                "aicr recipe --service aks --accelerator h100 --os ubuntu --intent training"
                " --profile gpuStack=operator-managed"
            ),
        ),
        (
            "a;rm h100 ubuntu training $(x)",
            "",
            "aicr recipe --service 'a;rm' --accelerator h100 --os ubuntu --intent training --platform '$(x)'",
        ),
    ],
)
def test_command_is_ready_for_a_shell(values: str, selection: str, command: str) -> None:
    assert command_of(candidate("r", values, selection=selection)) == command


def test_config_file_is_the_same_as_the_command() -> None:
    text = config_of(candidate("h100-aks", "aks h100 - training nim", selection="gpuStack=operator-managed"))
    assert load_text(text.encode()) == {
        "kind": "AICRConfig",
        "apiVersion": "aicr.run/v1alpha2",
        "metadata": {"name": "h100-aks"},
        "spec": {
            "recipe": {
                "criteria": {
                    "service": "aks",
                    "accelerator": "h100",
                    "os": "any",
                    "intent": "training",
                    "platform": "nim",
                },
                "profile": "gpuStack=operator-managed",
            }
        },
    }


def test_hostile_values_stay_values_in_the_config_file() -> None:
    text = config_of(candidate("1e3", "a:b no - training #x"))
    loaded = load_text(text.encode())
    assert isinstance(loaded, dict)
    assert loaded["metadata"] == {"name": "1e3"}
    assert '"no"' in text
    assert '"1e3"' in text


def test_candidate_of_a_catalogue_line() -> None:
    runs = [make_run(person("ann")), make_run(person("bob"), recipe_digest=OLDER)]
    verdict = verdict_of(runs, person("ann"), person("bob"), catalogue=[version()])
    found = candidate_of(summarize(verdict))
    assert found is not None
    assert (found.state, found.current_state, found.standing) == (State.CONFIRMED, State.SINGLE, State.SINGLE)
    assert (found.passes, found.threshold, found.criteria.platform) == (1, 2, "kubeflow")
    without = candidate_of(summarize(verdict_of(runs, person("ann"), person("bob"))))
    assert without is not None
    assert (without.standing, without.passes) == (State.CONFIRMED, 2)
    assert (found.backing, found.staleness) == (Backing.CATALOGUE, ("DRIFTED", "NEVER_PUBLISHED"))
    assert (without.backing, without.staleness) == (Backing.EVIDENCE, ("UNKNOWN_CURRENT",))
    assert candidate_of(summarize(verdict_of([]))) is None


@pytest.mark.parametrize(
    ("listed", "catalogue", "backing"),
    [
        pytest.param((person("ann"),), [version(), version(retired=True)], Backing.RETIRED, id="retired"),
        pytest.param(
            (person("ann"),),
            [version(), version(retired=True), version()],
            Backing.CATALOGUE,
            id="published-again",
        ),
        pytest.param((), [], Backing.NONE, id="strangers"),
        pytest.param((), [version(criteria=CRITERIA)], Backing.CATALOGUE, id="published-for-strangers"),
    ],
)
def test_who_backs_a_recipe(
    listed: tuple[SignerIdentity, ...], catalogue: list[CatalogueVersion], backing: Backing
) -> None:
    found = candidate_of(summarize(verdict_of([make_run(person("ann"))], *listed, catalogue=catalogue)))
    assert found is not None
    assert found.backing is backing


# --- what is asked ---------------------------------------------------------------------------------

FINGERPRINT = """\
service: {value: eks, source: k8s.node.provider}
accelerator: {value: h100}
os: {value: ubuntu, version: "22.04"}
k8sVersion: {value: "1.33.4"}
nodeCount: {value: 12}
"""

SNAPSHOT = """\
kind: Snapshot
measurements:
  - type: K8s
    subtypes:
      - subtype: node
        data: {provider: gke}
  - type: GPU
    subtypes:
      - subtype: hardware
        data: {gpu-present: true, model: b200}
  - type: OS
    subtypes:
      - subtype: release
        data: {ID: amzn}
  - type: NodeTopology
    subtypes:
      - subtype: label
        data: {nvidia.com/gpu.product: "NVIDIA-H100-80GB-HBM3|node1,node2"}
"""


def values(asked: Asked) -> tuple[str, ...]:
    return asked.criteria.specific()


def test_a_fingerprint_is_read() -> None:
    asked = asked_by_document(load_text(FINGERPRINT.encode()))
    assert values(asked) == ("eks", "h100", "ubuntu", "", "")
    assert asked.notes == ()


def test_named_values_win_over_the_document() -> None:
    asked = asked_by_document(load_text(FINGERPRINT.encode()), {"intent": "training", "os": "cos"})
    assert values(asked) == ("eks", "h100", "cos", "training", "")


def test_a_snapshot_is_read_by_its_measurements() -> None:
    """The label of the nodes goes before the one machine's own hardware."""
    assert values(asked_by_document(load_text(SNAPSHOT.encode()))) == ("gke", "h100", "amazonlinux", "", "")


def test_a_snapshots_own_fingerprint_goes_first() -> None:
    text = SNAPSHOT + "fingerprint:\n  service: {value: eks}\n  accelerator: {value: ''}\n"
    assert values(asked_by_document(load_text(text.encode()))) == ("eks", "h100", "amazonlinux", "", "")


def test_different_gpus_are_no_accelerator() -> None:
    text = SNAPSHOT.replace("data: {nvidia", "data: {nvidia.com/gpu.product.a100: NVIDIA-A100, nvidia")
    asked = asked_by_document(load_text(text.encode()))
    assert asked.criteria.accelerator == ""
    assert asked.notes == ("accelerator could not be read from the document",)


@pytest.mark.parametrize("text", ["[]", "a: b", "text", "", "measurements: text", "spec: {service: eks}"])
def test_other_documents_are_refused(text: str) -> None:
    with pytest.raises(DocumentInvalid):
        asked_by_document(load_text(text.encode()))


@pytest.mark.parametrize(
    "text",
    [
        "measurements: [1, {type: []}, {type: K8s, subtypes: [x, {data: []}, {subtype: node, data: {provider: []}}]}]",
        "service: []\nos: {value: {}}\naccelerator: {}\n",
    ],
)
def test_broken_documents_are_read_as_far_as_they_go(text: str) -> None:
    assert values(asked_by_document(load_text(text.encode()))) == ("", "", "", "", "")


@pytest.mark.parametrize(
    ("product", "accelerator"),
    [
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA-GB200", "gb200"),
        ("NVIDIA RTX PRO 6000 Blackwell", "rtx-pro-6000"),
        ("NVIDIA-L40S", "l40s"),
        ("NVIDIA L40", "l40"),
        ("NVIDIA GH200 480GB", ""),
        ("NVIDIA-T4", ""),
        ("", ""),
    ],
)
def test_product_names_give_accelerators_by_whole_words(product: str, accelerator: str) -> None:
    assert accelerator_of(product) == accelerator


def test_bad_questions_are_refused() -> None:
    with pytest.raises(RecipeInvalid, match="flavour"):
        ask("flavour=x")
    with pytest.raises(RecipeInvalid, match="name=value"):
        ask("profile=x")
