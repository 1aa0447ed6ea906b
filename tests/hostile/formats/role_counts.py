"""Kept role counts: read as the cache reads them; then every score, role and report."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random

import torch
from safetensors.torch import load, save

from clearhead.errors import CheckpointError
from clearhead.explain.roles.corpus.sources import corpus_of
from clearhead.explain.roles.counting import Count
from clearhead.explain.roles.counts.count_cache import CountCache
from clearhead.explain.roles.counts.tally_file import CHECKSUM, checksum_of
from clearhead.explain.roles.judging import Rules
from clearhead.explain.roles.planted import planted_model
from clearhead.explain.roles.reader import Reader
from clearhead.explain.roles.roles import Roles
from clearhead.explain.roles.scores import FIND
from clearhead.views.roles.shown import ShownRoles
from tests.hostile.mutant import Files, Format
from tests.shared.role_models import SOME, counted, some_sentences


@cache
def counting() -> Count:
    return Count(Reader(planted_model(some_sentences()), None, None), SOME, None, 1024, (0, 1))


def cached(folder: Path) -> CountCache:
    return CountCache(folder / "kept.counts", counting(), corpus_of(some_sentences()))


def use(folder: Path, random: Random) -> None:
    """Goes on from the counts, and draws what they say."""
    tally, done = cached(folder).load()
    assert done >= 0
    if not tally.layers:
        raise CheckpointError("these counts are not used: everything is counted again")
    roles = Roles("model", "corpus", tally, Rules(least_cases=3), SOME, {}, ())
    roles.title, roles.notes, roles.properties  # noqa: B018
    for head in roles.heads[:2]:
        roles.evidence(head.name)
    for number in range(len(tally.index.entries)):
        if roles.scores.cases(FIND, 0, 0, number):
            roles.scores.score(FIND, 0, 0, number)
        roles.best(tally.index.entries[number].name)
    way = random.randrange(8)
    if way == 0:
        tally.add(counted(counting()))
    elif way == 1:
        str(ShownRoles(roles))
    elif way == 2:
        ShownRoles(roles).save(folder / random.choice(("a.html", "a.csv", "a.json", "a.svg")))
    elif way == 3:
        for _ in counting().windows(corpus_of(some_sentences()), tally, done, None):
            pass


def repaired(files: Files) -> Files:
    """The counts with the checksum of what they hold now."""
    data = files["kept.counts"]
    try:
        assert isinstance(data, bytes)
        tensors = load(data)
        arrays = {name: held.numpy() for name, held in tensors.items() if name != CHECKSUM}
        tensors[CHECKSUM] = torch.from_numpy(checksum_of(arrays).copy())
        return files | {"kept.counts": save(tensors)}
    except Exception:  # no longer a file with tensors
        return files


def _specimens() -> list[dict[str, bytes]]:
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        tally = counted(counting())
        cached(Path(place)).save(tally, 31, now=True)
        return [{"kept.counts": (Path(place) / "kept.counts").read_bytes()}]


ROLE_COUNTS = Format("role counts", _specimens, use, weight=0.05, repaired=repaired)
