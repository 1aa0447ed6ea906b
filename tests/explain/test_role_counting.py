"""Counting: hand-computed scores, new properties, resuming, sharing, other models."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

import clearhead as ch
from clearhead.errors import CheckpointError, InputError
from clearhead.explain.roles.built_in import BUILT_IN
from clearhead.explain.roles.built_in_text import made_sentences
from clearhead.explain.roles.corpus import corpus_of
from clearhead.explain.roles.counting import Count
from clearhead.explain.roles.judging import Rules
from clearhead.explain.roles.keeping import Keeper, run_key
from clearhead.explain.roles.planted import planted_model
from clearhead.explain.roles.properties import Property, Targets
from clearhead.explain.roles.reader import Reader
from clearhead.explain.roles.roles import find_roles
from clearhead.explain.roles.scores import CONFIRM, FIND, ScoreBook
from clearhead.explain.roles.sentence import Sentence
from clearhead.explain.roles.tally import Tally
from clearhead.explain.roles.tokenised import TokenisedSentence
from clearhead.text.words import WordTokenizer
from clearhead.trace.watch import watch
from clearhead.views.roles_shown import roles


@cache
def sentences() -> tuple[Sentence, ...]:
    return tuple(made_sentences(37))


SOME = tuple(
    BUILT_IN[name]
    for name in ("previous token", "first token", "names", "relations", "rarest word")
)


def counted(count: Count, corpus: object = None) -> Tally:
    tally = Tally()
    for _ in count.windows(corpus_of(corpus or sentences()), tally):  # type: ignore[arg-type]
        pass
    return tally


def same(one: Tally, other: Tally) -> bool:
    """Whether two tallies count the same, whatever the order of their properties."""
    if set(one.book.numbers) != set(other.book.numbers) or one.totals != other.totals:
        return False
    order = [other.book.numbers[entry.name] for entry in one.book.entries]
    return one.occurs == other.occurs and all(
        np.array_equal(held, other.numbers[name][:, :, :, order])
        for name, held in one.numbers.items()
    )


def test_scores_are_those_of_the_exact_weights() -> None:
    """Every hit and every mass again, row by row, from what watch shows."""
    model = planted_model(sentences())
    prop = BUILT_IN["same token"]
    tally = counted(Count(Reader(model), [prop, BUILT_IN["first token"]]))
    book = ScoreBook(tally)
    number, head = tally.book.numbers["same token"], 1
    variant = book.variant(0, head, number)
    hits, mass, cases = [0, 0], [0.0, 0.0], [0, 0]
    for sentence in sentences():
        read = Reader(model).read(sentence)
        with watch(model.model) as seen:
            model.model(torch.tensor([[token.id for token in read.tokens]]))
        for query, targets in prop.targets(read).items():  # type: ignore[union-attr]
            weights = seen["L0H1"].row(query).clone()
            kept = [target for target in targets if not (variant and target == 0)]
            if not kept or query + 1 - variant < 2:
                continue
            half = sentence.key & 1
            shown = weights[: query + 1].clone()
            shown[:variant] = -1
            hits[half] += int(shown.argmax()) in kept
            mass[half] += float(weights[kept].sum())
            cases[half] += 1
    for half in (FIND, CONFIRM):
        score = book.score(half, 0, head, number)
        assert (score.hits, score.cases) == (hits[half], cases[half])
        assert score.mass == pytest.approx(mass[half] / cases[half], abs=1e-4)


def test_a_new_property_is_one_function() -> None:
    def before_the_comma(sentence: TokenisedSentence) -> Targets:
        commas = [place for place, unit in enumerate(sentence.units) if unit.text == ","]
        return {comma: [comma - 1] for comma in commas}

    found = find_roles(
        planted_model(sentences()),
        sentences(),
        properties=[before_the_comma],
        interventions=0,
        rules=Rules(least_cases=5),
    )
    (report,) = [one for one in found.properties if one.name == "before the comma"]
    assert report.cases == report.occurs > 10
    score = found.best("before the comma")
    assert score is not None and score.head == "L0H0" and score.accuracy == 1.0
    assert score.baseline == 1.0  # the fixed offset −1 gets it for free: no role
    assert "before the comma" not in {role.property for role in found.named}


def test_wrong_properties_are_refused() -> None:
    model = planted_model(sentences())
    far = Property("far", lambda _: {0: [999]})
    with pytest.raises(InputError, match="'far' names position 999; the sentence has positions"):
        find_roles(model, sentences(), properties=[far])
    with pytest.raises(InputError, match="there is no built-in property 'verbs'"):
        find_roles(model, sentences(), properties=["verbs"])
    with pytest.raises(InputError, match="previous token came twice"):
        find_roles(model, sentences(), properties=["previous token", "previous token"])


def test_a_corpus_without_sentences_is_refused() -> None:
    few = "holds no sentence that could be counted: of 1 that came, 1 are too short and 0 too long"
    with pytest.raises(InputError, match=few):
        find_roles(planted_model(sentences()), ["", "One"])


def test_a_property_without_a_case_never_occurs() -> None:
    found = find_roles(
        planted_model(sentences()), sentences(), properties=["numbers", "entities"], interventions=0
    )
    verdicts = {report.name: report.verdict for report in found.properties}
    assert verdicts["entities"] == "never occurs"


def test_an_interrupted_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import clearhead.explain.roles.counting as counting

    monkeypatch.setattr(counting, "WINDOW", 7)
    model = Reader(planted_model(sentences()))
    corpus = corpus_of(sentences())
    count = Count(model, SOME)
    whole = counted(count)
    tally, keeper = Tally(), Keeper(tmp_path / "counts", count, corpus)
    for done in count.windows(corpus, tally):
        keeper.save(tally, done, now=True)
        if done > 20:
            break  # the power fails
    again, done = Keeper(tmp_path / "counts", count, corpus).load()
    assert done == 21
    for _ in count.windows(corpus, again, done):
        pass
    assert same(again, whole)
    other = Count(model, (BUILT_IN["itself"],))
    assert Keeper(tmp_path / "counts", other, corpus).load()[1] == 0  # not the same work
    (tmp_path / "counts").write_bytes(b"rubbish")
    assert Keeper(tmp_path / "counts", count, corpus).load()[1] == 0


def test_what_was_counted_is_not_counted_again(tmp_path: Path) -> None:
    corpus, keep = tmp_path / "text.txt", tmp_path / "counts"
    corpus.write_text("\n\n".join(sentence.text for sentence in sentences()))
    model, wanted = planted_model(sentences()), ["previous token"]

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
    assert heard == ["switching heads off"] and keep.exists()
    assert [role.head for role in again.named] == ["L0H0"]
    assert same(again.tally, find_roles(model, corpus, properties=wanted, interventions=0).tally)
    find_roles(model, sentences(), properties=wanted, interventions=0, keep=tmp_path / "given")
    assert not (tmp_path / "given").exists()  # other sentences may be given the next time
    with pytest.raises(CheckpointError, match="counts cannot be kept in"):
        find_roles(model, corpus, properties=wanted, keep=corpus / "counts")


def test_counts_of_another_function_are_not_believed() -> None:
    reader, corpus = Reader(planted_model(sentences())), corpus_of(sentences())
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


def test_shares_add_up_to_the_whole() -> None:
    model = Reader(planted_model(sentences()))
    whole = counted(Count(model, SOME))
    together = Tally()
    for process in range(3):
        part = counted(Count(model, SOME, share=(process, 3)))
        together.add(Tally.from_bytes(part.to_bytes())[0])
    assert same(together, whole)


def test_two_processes_give_the_table_of_one(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(
        "import sys\n"
        "from clearhead.explain.roles.built_in_text import made_sentences\n"
        "from clearhead.explain.roles.planted import planted_model\n"
        "from clearhead.explain.roles.sharing import process_share\n"
        "from clearhead.views.roles_shown import roles\n"
        "sentences = list(made_sentences(37))\n"
        "with process_share() as share:\n"
        "    found = roles(planted_model(sentences), sentences, share=share, interventions=0)\n"
        "    if share[0] == 0:\n"
        "        found.csv(sys.argv[1])\n"
    )
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command = [*launch, str(script), str(tmp_path / "two")]
    subprocess.run(command, check=True, capture_output=True, timeout=120, env=environment)
    one = roles(planted_model(sentences()), sentences(), interventions=0)
    assert one.csv() == (tmp_path / "two").read_text()


@pytest.mark.parametrize("family", ["llama", "bert"])
def test_models_of_transformers(family: str) -> None:
    torch.manual_seed(0)
    tokenizer = WordTokenizer.from_texts(sentence.text for sentence in sentences())
    sizes = {
        "vocab_size": tokenizer.size, "hidden_size": 30, "intermediate_size": 17,
        "num_hidden_layers": 2, "num_attention_heads": 5, "max_position_embeddings": 64,
    }  # fmt: skip
    model: torch.nn.Module
    if family == "llama":
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes)).eval()
    else:
        model = transformers.BertModel(transformers.BertConfig(**sizes)).eval()
    reader = Reader(model, tokenizer)
    usual = counted(Count(reader, tuple(BUILT_IN.values())))
    assert [layer.name for layer in usual.layers] == ["L0", "L1"]
    assert all(layer.causal == (family == "llama") for layer in usual.layers)
    small = counted(Count(reader, tuple(BUILT_IN.values()), batch_tokens=64))
    assert same(usual, small)


def test_heads_of_transformers_models_can_be_switched_off() -> None:
    from clearhead.explain.roles.switching import MeanOutputs, output_projection, switched_off
    from clearhead.explain.roles.tally import CountedLayer

    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=47, hidden_size=30, intermediate_size=17, num_hidden_layers=2,
        num_attention_heads=5,
    )  # fmt: skip
    model = transformers.BertModel(config, add_pooling_layer=False).eval()
    layer = CountedLayer("L1", 5, False, "encoder.layer.1.attention.self", 6)
    dense = output_projection(model, layer)
    assert dense is model.encoder.layer[1].attention.output.dense
    ids = torch.arange(11)[None]
    with torch.no_grad():
        before = model(ids).last_hidden_state
        means = MeanOutputs(model, [layer])
        model(ids)
        means.close()
        kept = dense.weight[:, 18:24].clone()
        with switched_off(model, layer, 3):
            off = model(ids).last_hidden_state
        dense.weight[:, 18:24] = 0.0  # the same by hand
        by_hand = model(ids).last_hidden_state
        dense.weight[:, 18:24] = kept
        after = model(ids).last_hidden_state
    assert torch.allclose(off, by_hand, atol=1e-6) and not torch.allclose(off, before, atol=1e-4)
    assert torch.equal(before, after)
    assert means.of(layer, 3).shape == (6,)
    unknown = CountedLayer("L1", 7, False, "encoder.layer.1.attention.self", 6)
    with pytest.raises(InputError, match="no part of it takes 42 numbers"):
        output_projection(model, unknown)


def test_a_model_that_nobody_knows_how_to_run_says_so() -> None:
    tokenizer = WordTokenizer.from_texts(["a b"])
    with pytest.raises(InputError, match="how to run Linear on token ids is not known"):
        Reader(torch.nn.Linear(3, 3), tokenizer)
    with pytest.raises(InputError, match="needs the model's tokenizer"):
        Reader(torch.nn.Linear(3, 3))


def test_encoders_of_encoder_decoders_are_counted() -> None:
    torch.manual_seed(0)
    tokenizer = WordTokenizer.from_texts(sentence.text for sentence in sentences())
    config = ch.ModelConfig(
        kind="encoder-decoder", vocab=tokenizer.size, context=64, model=24, layers=1,
        encoder_layers=2, heads=3, feed_forward=17, positions="sinusoidal",
    )  # fmt: skip
    reader = Reader(ch.EncoderDecoder(config).eval().requires_grad_(False), tokenizer)
    tally = counted(Count(reader, (BUILT_IN["previous token"], BUILT_IN["first token"])))
    assert [layer.name for layer in tally.layers] == ["E0", "E1"]


@pytest.mark.download
@pytest.mark.parametrize("name", ["minilm", "smollm2"])
def test_real_models_count_the_same_to_the_last_bit(name: str) -> None:
    """Batches of one sentence, of many, in another order, and shared by processes."""
    reader, work = Reader(ch.load(name)), list(sentences()[: 23 if name == "minilm" else 7])
    wanted, last = (*SOME, BUILT_IN["punctuation"]), [0, 5 if name == "minilm" else 29]
    usual = counted(Count(reader, wanted, last), work)
    assert usual.numbers["mass"].any() and usual.numbers["hits"].any()
    assert same(usual, counted(Count(reader, wanted, last, batch_tokens=16), work))
    assert same(usual, counted(Count(reader, wanted, last, batch_tokens=200), work[::-1]))
    together = Tally()
    for process in range(2):
        together.add(counted(Count(reader, wanted, last, share=(process, 2)), work[::-1]))
    assert same(usual, together)
