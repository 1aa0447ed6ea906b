"""Roles of heads beside their names: measured before, or on request."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clearhead.checkpoints.load import Loaded
from clearhead.checkpoints.store.cache_folder import cache_folder
from clearhead.explain.roles.roles import Roles, find_roles
from clearhead.studio.worker import Job
from clearhead.views.roles.text import percent, plain_role


def send_roles(loaded: Loaded, job: Job, *, measure: bool) -> None:
    """Send the role of each head that has one; ``measure`` counts where nothing is kept."""
    keep = counts_file(loaded)
    if not keep.exists() and not measure:
        job.tell("roles", known=False, heads={})
        return

    def stage(name: str) -> Callable[[int, int | None], None]:
        return lambda done, total: job.progress(done, total or 0, name)

    found = find_roles(loaded, None, interventions=0, keep=keep, progress=stage)
    job.tell("roles", known=True, heads=described(found), corpus=found.corpus)


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
