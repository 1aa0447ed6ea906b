from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from clearhead.errors import CheckpointError
from clearhead.explain.roles.built_in_properties import BUILT_IN
from clearhead.explain.roles.corpus.sources import corpus_of
from clearhead.explain.roles.counting import Count
from clearhead.explain.roles.counts.count_cache import CountCache, run_key
from clearhead.explain.roles.counts.tally import Tally
from clearhead.explain.roles.planted import planted_model
from clearhead.explain.roles.properties import Property
from clearhead.explain.roles.reader import Reader
from clearhead.explain.roles.roles import find_roles
from tests.shared.role_models import SOME, counted, same, some_sentences


def test_an_interrupted_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import clearhead.explain.roles.counting as counting

    monkeypatch.setattr(counting, "WINDOW", 7)
    model = Reader(planted_model(some_sentences()))
    corpus = corpus_of(some_sentences())
    count = Count(model, SOME)
    whole = counted(count)
    tally, cache = Tally(), CountCache(tmp_path / "counts", count, corpus)
    for done in count.windows(corpus, tally):
        cache.save(tally, done, now=True)
        if done > 20:
            break  # the power fails
    again, done = CountCache(tmp_path / "counts", count, corpus).load()
    assert done == 21
    for _ in count.windows(corpus, again, done):
        pass
    assert same(again, whole)
    other = Count(model, (BUILT_IN["itself"],))
    assert CountCache(tmp_path / "counts", other, corpus).load()[1] == 0  # not the same work
    (tmp_path / "counts").write_bytes(b"rubbish")
    assert CountCache(tmp_path / "counts", count, corpus).load()[1] == 0


def test_what_was_counted_is_not_counted_again(tmp_path: Path) -> None:
    corpus, keep = tmp_path / "text.txt", tmp_path / "counts"
    corpus.write_text("\n\n".join(sentence.text for sentence in some_sentences()))
    model, wanted = planted_model(some_sentences()), ["previous token"]

    def stop(what: str) -> Callable[[int, int | None], None]:
        if what != "counting":
            raise KeyboardInterrupt
        return lambda *_: None

    with pytest.raises(KeyboardInterrupt):
        find_roles(model, corpus, properties=wanted, keep=keep, progress=stop)
    heard: list[str] = []
    again = find_roles(
        model, corpus, properties=wanted, keep=keep,
        progress=lambda what: lambda *_: heard.append(what),
    )  # fmt: skip
    assert heard == ["ablating heads"] and keep.exists()
    assert [role.head for role in again.named] == ["L0H0"]
    assert same(again.tally, find_roles(model, corpus, properties=wanted, interventions=0).tally)
    find_roles(model, some_sentences(), properties=wanted, interventions=0, keep=tmp_path / "given")
    assert not (tmp_path / "given").exists()  # other sentences may be given the next time
    with pytest.raises(CheckpointError, match="counts cannot be kept in"):
        find_roles(model, corpus, properties=wanted, keep=corpus / "counts")


def test_counts_of_another_function_are_not_believed() -> None:
    reader, corpus = Reader(planted_model(some_sentences())), corpus_of(some_sentences())
    keys = {
        run_key(Count(reader, [Property("aim", function)]), corpus)
        for function in (
            lambda _: {1: [0]},
            lambda _: {2: [0]},
            lambda s: {1: [0]} if s.sentence.text in {"a", "b"} else {},
            lambda s: {n: [0] for n in range(1, len(s.units))},
        )
    }
    assert len(keys) == 4
