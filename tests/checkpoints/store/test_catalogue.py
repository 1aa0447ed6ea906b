from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import clearhead as ch
from clearhead.checkpoints.store.catalogue import CATALOGUE, DATES, SMOLLM2, CatalogueEntry
from clearhead.checkpoints.store.wheel import sha256_of

PACKAGE = Path(str(ch.__file__)).parent


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=CATALOGUE)
def test_entries_are_complete(entry: CatalogueEntry) -> None:
    assert all(len(file.sha256) == 64 and file.size > 0 for file in entry.files)
    assert len({file.path for file in entry.files}) == len(entry.files)
    assert entry.main in ("", *(file.path for file in entry.files))
    assert entry.size == sum(file.size for file in entry.files)
    assert all(file.member for file in entry.files) == (entry.wheel is not None)


def test_the_built_in_model_is_what_the_catalogue_says() -> None:
    assert DATES.package_folder is not None
    for file in DATES.files:
        path = PACKAGE / DATES.package_folder / file.path
        assert (path.stat().st_size, sha256_of(path)) == (file.size, file.sha256)
    loaded = ch.load("dates")
    assert (loaded.config.kind, loaded.config.layers, loaded.config.heads) == (
        DATES.kind, DATES.layers, DATES.heads,
    )  # fmt: skip
    assert sum(p.numel() for p in loaded.model.parameters()) == DATES.parameters


def test_an_entry_has_one_origin() -> None:
    with pytest.raises(ValueError, match="from a wheel or from the package, not both"):
        dataclasses.replace(SMOLLM2, package_folder="x")
