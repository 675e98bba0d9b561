"""The in-memory store under pushes, lists and acts."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from app.core.catalogue import CatalogueVersion, check_push, completed
from app.core.errors import InputError, NotFoundError
from app.core.refs import Digest
from app.ports import (
    Act,
    AllowlistVersion,
    Classify,
    Project,
    Weighing,
)
from tests.support.memory_state import MemoryState, with_seq


class MemoryChanges(MemoryState):
    """Those methods of `app.ports.EvidenceStore` that change what evidence means."""

    # --- catalogue, allowlist, acts ---

    def put_catalogue(
        self,
        versions: Sequence[CatalogueVersion],
        /,
        *,
        replace: bool,
        project: Project,
        allowlist_sha256: str | None = None,
    ) -> tuple[str, ...]:
        check_push(versions, replace_all=replace)
        with self._lock:
            self._require_list(allowlist_sha256)
            newest = {version.recipe: version for version in self._state.catalogue}
            changed = []
            for version in versions:
                if (fresh := completed(version, newest.get(version.recipe))) is not None:
                    changed.append(fresh)
                    newest[version.recipe] = fresh
            if replace:
                changed.extend(self._retired(newest, versions))
            for version in changed:
                number = self._append("catalogue-pushed", version.recorded_at, {"version": version})
                self._state.catalogue.append(with_seq(version, number))
            names = tuple(sorted({version.recipe for version in changed}))
            for name in names:
                self._refresh(name, project)
            return names

    def _retired(
        self, newest: Mapping[str, CatalogueVersion], versions: Sequence[CatalogueVersion]
    ) -> list[CatalogueVersion]:
        at = max(version.recorded_at for version in versions)
        pushed = {version.recipe for version in versions}
        return [
            replace(old, retired=True, recorded_at=at)
            for name, old in sorted(newest.items())
            if name not in pushed and not old.retired
        ]

    def activate_allowlist(self, version: AllowlistVersion, /, *, project: Project, classify: Classify) -> bool:
        if version.sha256 != hashlib.sha256(version.text).hexdigest():
            raise InputError("not the sha256 of the text")
        with self._lock:
            if self._in_force() == version.sha256:
                return False
            number = self._append("allowlist-activated", version.since, {"text": self._keep_text(version.text)})
            self._state.allowlists.append(replace(version, seq=number))
            self._reclassify(classify)
            for recipe in sorted(self._state.lines):
                self._refresh(recipe, project)
            return True

    def reproject(
        self, mark: str, /, *, project: Project, weighing: Weighing, allowlist_sha256: str | None = None
    ) -> bool:
        with self._lock:
            if self._projected_by == mark:
                return False
            self._require_list(allowlist_sha256)
            self._projected_by = mark
            rule = weighing.rule
            data = {"mark": mark, "confirmBy": rule.by.value, "threshold": rule.threshold}
            self._append("weighing-changed", weighing.since, data | {"agedAfterDays": rule.aged_after_days})
            self._weighings.append(weighing)
            for recipe in sorted(self._state.lines):
                self._refresh(recipe, project)
            return True

    def weighings(self) -> tuple[Weighing, ...]:
        return tuple(self._weighings)

    def allowlist_in_force(self) -> str | None:
        return self._in_force()

    def allowlists(self) -> tuple[AllowlistVersion, ...]:
        return tuple(self._state.allowlists)

    def retract(
        self,
        digest: Digest,
        source_id: str,
        act: Act,
        /,
        *,
        retracted: bool,
        project: Project,
        allowlist_sha256: str | None = None,
    ) -> bool:
        with self._lock:
            self._require_list(allowlist_sha256)
            found = [run for run in self._runs() if (run.digest, run.source_id) == (digest, source_id)]
            if not found:
                raise NotFoundError(f"no record of {digest}")
            data = {"digest": digest.hex, "source": source_id, "recipe": found[0].recipe}
            kind = "evidence-retracted" if retracted else "retraction-withdrawn"
            act_data = data | {"reason": act.reason, "actor": act.actor}
            return self._act(kind, act.at, act_data, on=retracted, project=project)

    def set_gone(
        self, digest: Digest, at: datetime, /, *, gone: bool, project: Project, allowlist_sha256: str | None = None
    ) -> bool:
        with self._lock:
            self._require_list(allowlist_sha256)
            self._require(digest)
            kind = "bundle-gone" if gone else "bundle-found"
            return self._act(kind, at, {"digest": digest.hex}, on=gone, project=project)

    def _act(self, kind: str, at: datetime, data: dict[str, str], *, on: bool, project: Project) -> bool:
        if bool(self._open(data)) == on:
            return False
        self._append(kind, at, data)
        self._span(at, data, on=on)
        for recipe in sorted({run.recipe for run in self._runs() if run.digest.hex == data["digest"]}):
            self._refresh(recipe, project)
        return True
