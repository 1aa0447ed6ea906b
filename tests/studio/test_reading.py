import pytest
import torch

from clearhead.errors import InputError
from clearhead.explain.make_look import make_look, read_passage
from clearhead.explain.predictions import predictions_of
from clearhead.studio import reading
from clearhead.studio.reading import Reader, whole_passage
from tests.shared.explain_models import decoder

TEXTS = [
    "the students opened their books",
    "the students opened their books and their",  # longer
    "the students opened the door",  # another end
    "the students",  # shorter
    "minds and the door",  # another text
    "minds and the door",  # the same
]


@pytest.mark.parametrize("step", [128, 3])
def test_a_changed_text_has_the_numbers_of_a_whole_run(
    monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Whatever was read before: weights, logits and the proof are those of a text read at once."""
    monkeypatch.setattr(reading, "STEP", step)
    loaded, computed = decoder(), []
    reader = Reader(loaded)
    for text in TEXTS:
        passage = read_passage(loaded, text)
        seen, kept = reader.read(passage, lambda done, all: None)
        computed.append((reader.computed, len(passage)))
        once, logits = Reader(loaded).read(passage, lambda done, all: None)
        whole = make_look(loaded, text).seen  # by torch, in float32
        for layer in ("L0", "L1"):
            assert torch.equal(seen[layer].weights(), once[layer].weights())
            difference = (seen[layer].weights() - whole[layer].weights()).abs().max()
            assert float(difference) < 0.02
        assert torch.equal(kept.logits, logits.logits) and torch.equal(kept.came, logits.came)
        assert seen.verify().exact
        for position, found in enumerate(predictions_of(loaded, passage).all):
            same = [one.id for one in found.likeliest[:5]]
            assert set(same) & set(kept.ids[position, :8].tolist()) == set(same)
    assert computed[0][0] == computed[0][1] and computed[1][0] < computed[1][1]
    assert computed[4][0] == computed[4][1] and computed[5][0] <= 2


def test_a_reader_that_was_interrupted_reads_on_rightly() -> None:
    loaded = decoder()
    reader = Reader(loaded)
    passage = read_passage(loaded, TEXTS[1])

    def stop(done: int, all: int) -> None:
        if done == all:
            raise InterruptedError

    reader.read(read_passage(loaded, TEXTS[0]), lambda done, all: None)
    with pytest.raises(InterruptedError):
        reader.read(passage, stop)
    seen, _ = reader.read(passage, lambda done, all: None)
    assert seen.verify().exact and seen.layers[0].queries == len(passage)


def test_written_tokens_follow_the_text() -> None:
    loaded = decoder()
    assert loaded.tokenizer is not None
    ids = loaded.tokenizer.encode(" and their", special=False)
    passage, written = whole_passage(loaded, "the students", ids)
    assert passage.text == "the students and their" and written is not None
    assert [token.id for token in passage.tokens[written.prompt :]] == ids
    with pytest.raises(InputError, match="ids 0"):
        whole_passage(loaded, "the", [10_000])
