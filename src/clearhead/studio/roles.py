"""Roles of heads beside their names: measured before, or on request."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from clearhead.checkpoints.load import Loaded
from clearhead.checkpoints.store.cache_folder import cache_folder
from clearhead.explain.roles.roles import Roles, find_roles
from clearhead.studio.worker import Job
from clearhead.views.roles.text import percent, plain_role


class KnownRoles:
    """The roles of the models that are loaded: a page that comes later does not wait for them."""

    def __init__(self) -> None:
        self._sent: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()

    def send(self, loaded: Loaded, job: Job, *, measure: bool) -> None:
        """Send the role of each head that has one; ``measure`` counts where nothing is kept."""
        keep = counts_file(loaded)
        if loaded.model not in self._sent and not keep.exists() and not measure:
            job.tell("roles", known=False, heads={})
            return
        if loaded.model not in self._sent:
            self._sent[loaded.model] = _found(loaded, job, keep)
        job.tell("roles", known=True, **self._sent[loaded.model])


def _found(loaded: Loaded, job: Job, keep: Path) -> dict[str, Any]:
    """Count, or go on where an interrupted count stopped."""

    def stage(name: str) -> Callable[[int, int | None], None]:
        def counted(done: int, total: int | None) -> None:
            job.progress(done, total or 0, name)
            job.pause()  # the counts are whole: batches are added one by one

        return counted

    found = find_roles(loaded, None, interventions=0, keep=keep, progress=stage)
    return {"heads": described(found), "corpus": found.corpus}


def described(found: Roles) -> dict[str, list[dict[str, Any]]]:
    """The roles of each head, strongest first, each with its evidence in words."""
    return {
        head.name: [
            {
                "role": plain_role(role.property),
                "evidence": f"{percent(role.confirmed.share)} of {role.confirmed.cases} cases, "
                f"{percent(role.confirmed.baseline)} for free",
            }
            for role in head.roles
        ]
        for head in found.heads
        if head.roles
    }


def counts_file(loaded: Loaded) -> Path:
    """The file that keeps the counts of a model; its contents say whether they are of this one."""
    facts = repr((loaded.name, loaded.config))
    name = hashlib.blake2b(facts.encode(), digest_size=8).hexdigest()
    return cache_folder() / "roles" / f"studio-{name}.counts"
