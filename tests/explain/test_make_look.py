from __future__ import annotations

import pytest
import torch

import clearhead as ch
from clearhead.errors import InputError
from clearhead.explain.make_look import make_look
from tests.shared.explain_models import decoder, translator


def test_reading_leaves_the_model_as_it_was() -> None:
    loaded = decoder()
    loaded.model.train()
    try:
        make_look(loaded, "the students")
        assert loaded.model.training
    finally:
        loaded.model.eval()


def test_a_text_is_read_once_with_all_its_tokens() -> None:
    loaded = decoder()
    look = make_look(loaded, "the students opened their books")
    assert loaded.tokenizer is not None
    assert look.layers[0].queries == len(loaded.tokenizer.encode(look.text))
    assert look.text == "the students opened their books"
    assert look.name == "tiny"
    assert look.generated == ()


def test_what_is_generated_says_what_it_looked_at() -> None:
    look = make_look(decoder(), "the students opened their", generate=5)
    events = ch.generate(
        decoder(), "the students opened their", max_tokens=5, temperature=0, engine=False
    )
    tokens = [event for event in events if event.token is not None]
    assert len(look.generated) == len(tokens)
    assert look.text.startswith("the students opened their")
    for written, event in zip(look.generated, tokens, strict=True):
        assert written.probability == pytest.approx(event.probability, abs=1e-5)
    # the query that wrote the first new token is the prompt's last
    prompt = look.layers[0].queries - len(tokens) + 1
    assert look.generated[0].position == prompt
    source = look.generated[0].sources[0]
    row = look.seen[source.head].row(prompt - 1)
    expected = sum(float(row[token]) for token in source.mark.tokens)
    assert source.weight == pytest.approx(expected, abs=1e-4)


def test_a_translator_writes_by_itself() -> None:
    look = make_look(translator(), "the students opened the door", generate=4)
    assert look.source_text == "the students opened the door"
    assert 1 <= len(look.generated) <= 4
    assert len(look.generated) == look.layers[-1].queries
    assert look.head("C1H0").weights.shape == (len(look.axes("C1")[0]), len(look.axes("C1")[1]))


def test_what_was_written_is_told_by_cross_attention_whatever_head_is_shown() -> None:
    looks = [
        make_look(translator(), "the students opened the door", generate=4, head=head)
        for head in (None, "E0H1", "L1H2", "all")
    ]
    heads = {source.head for look in looks for one in look.generated for source in one.sources}
    assert heads and all(head.startswith("C") for head in heads)
    assert all(look.generated == looks[0].generated for look in looks)


def test_a_trace_needs_no_text() -> None:
    seen = make_look(decoder(), "the students opened").seen
    assert make_look(seen, head="L0H1").chosen_head == "L0H1"
    with pytest.raises(InputError, match="a trace has its text already"):
        make_look(seen, "another")


@pytest.mark.parametrize("text", ["", "  \n "])
def test_an_empty_text_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="the text is empty: there is nothing to look at"):
        make_look(decoder(), text)


def test_wrong_things_are_named() -> None:
    with pytest.raises(InputError, match=r"look wants a model from clearhead.load.*got Linear"):
        make_look(torch.nn.Linear(2, 2), "x")
    with pytest.raises(InputError, match="a source is for encoder-decoders; tiny is a decoder"):
        make_look(decoder(), "the", source="der")
    with pytest.raises(InputError, match="a text is wanted to look at; got NoneType"):
        make_look(decoder())
    with pytest.raises(InputError, match="generate must be a whole number of 0 or more; got -1"):
        make_look(decoder(), "the", generate=-1)
    with pytest.raises(InputError, match=r"the text has 9 tokens.*context holds 7") as caught:
        make_look(decoder(7), "the students opened their books and the door")
    assert caught.value.hint is not None and "look at a part of it" in caught.value.hint
    with pytest.raises(InputError, match="this model has 2 layers of 4 heads"):
        make_look(decoder(), "the students", head="L7H1").why  # noqa: B018
    with pytest.raises(InputError, match="there is no word 'zebra' here"):
        make_look(decoder(), "the students", word="zebra").why  # noqa: B018


@pytest.mark.parametrize(
    "text",
    [
        "😀😀 !!",
        "你好世界，我喜欢猫。",
        "مرحبا بالعالم",
        "x" * 400,
        "a\x00b\x1b[31m</script>",
        "\n\n\t a",
    ],
)
def test_any_text_can_be_looked_at(text: str) -> None:
    look = make_look(decoder(4000), text)
    assert sum(len(mark.tokens) for mark in look.rows) == look.layers[0].queries
    assert all(mark.text for mark in look.rows)
    assert look.word().strengths.shape == (len(look.columns),)
