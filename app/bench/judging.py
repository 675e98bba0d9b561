"""Judging one bundle, from its files on disk to the verdict, against nothing but sigstore's `verify_dsse`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from app.adapters.sigstore.bare import BareVerifier
from app.bench.figures import Bar, Figure, Outcome, Profile
from app.bench.plan import Plan
from app.bench.samples import SignedBundle, Workbench, sample_recipe, workbench
from app.bench.timing import Pairs, Step, interleave, profiled, rotating
from app.core.bundle import Accepted
from app.core.errors import StoreError
from app.ports import Judge
from app.sandbox.sigstore import Curve, LogVersion

_BUNDLES = 8
_BAR = Bar(3.0, goal=1.5)


def judging(plan: Plan) -> Outcome:
    """All kinds of signature; the bar is for Rekor v2 with a timestamp under a P-384 authority."""
    figures: list[Figure] = []
    profiles: list[Profile] = []
    for curve in (Curve.P384, Curve.P256):
        with workbench(curve) as bench:
            for log in (LogVersion.V2, LogVersion.V1):
                bar = _BAR if (curve, log) == (Curve.P384, LogVersion.V2) else None
                name = f"judge-{log.value}-{curve.name.lower()}"
                what = f"judge against bare verify_dsse, Rekor {log.value}, {curve.name} authority"
                contest = _Contest(bench, bench.judge_factory()(), log)
                pairs = contest.run(plan, sample_recipe())
                figures.append(Figure(name, what, pairs.ratio, "x", bar, pairs.details("judge", "bare")))
                if bar is None:
                    continue
                step = contest.judging(contest.bundles(sample_recipe()))
                profiles.append(profiled("judge", step[0], seconds=pairs.seconds[0]))
                pairs = contest.run(plan, sample_recipe(outside_form=True))
                what = f"{what}, recipe not in encoder form"
                figures.append(Figure(f"{name}-libyaml", what, pairs.ratio, "x", None, pairs.details("judge", "bare")))
    return Outcome(tuple(figures), tuple(profiles))


@dataclass(frozen=True, slots=True)
class _Contest:
    """Our judge and the bare verifier under one root, over signatures in one log."""

    bench: Workbench
    judge: Judge
    log: LogVersion

    def bundles(self, recipe: bytes) -> list[SignedBundle]:
        """Several bundles of one recipe."""
        return [self.bench.sign(number, log=self.log, recipe=recipe) for number in range(_BUNDLES)]

    def judging(self, bundles: Sequence[SignedBundle]) -> list[Step]:
        """Our side."""
        return [partial(self.judge.judge, bundle.job()) for bundle in bundles]

    def run(self, plan: Plan, recipe: bytes) -> Pairs:
        """The pairs; every sample must be accepted."""
        bundles = self.bundles(recipe)
        judged = self.judging(bundles)
        for step in judged:
            if not isinstance(verdict := step(), Accepted):
                raise StoreError(f"expected a sample to be accepted, it was {verdict}")
        bare = BareVerifier(str(self.bench.trusted_root))
        verified: list[Step] = [
            partial(bare.verify, bare.parse(one.signature), identity=one.signer.value, issuer=one.signer.issuer)
            for one in bundles
        ]
        rounds = plan.pick(small=80, full=400)
        pairs = interleave(rotating(judged), rotating(verified), rounds=rounds, warm=_BUNDLES)
        plan.tick()
        return pairs
