"""Watching on the CPU engine: the same bits as unwatched, and weights that are proven."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import clearhead as ch
from clearhead.checkpoints.load import Loaded
from clearhead.engine.engine import Engine, engine_runs_here
from clearhead.engine.runner import EngineRunner, engine_supports
from clearhead.engine.seen_rows import SeenRows
from clearhead.generation.runner import Runner
from clearhead.generation.runner_factory import make_runner
from clearhead.generation.speculative_runner import SpeculativeRunner
from clearhead.generation.torch_runner import TorchRunner
from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.trace.watching.watched import Watched
from tests.engine.test_runner import (
    DECODERS,
    SIZES,
    TRANSLATORS,
    decoder,
    quantised,
    rows_of,
    translator,
)

pytestmark = pytest.mark.skipif(not engine_runs_here(), reason="no OpenMP or half precision here")


def loaded_of(model: Decoder | EncoderDecoder) -> Loaded:
    return Loaded("tiny", Path(), model, model.config, None)


def weights_of(seen: Watched) -> list[Tensor]:
    """Every weight of every layer by the formula in float64: (batch, head, query, key)."""
    found = []
    for record in seen.records:
        group = record.facts.heads // record.facts.kv_heads
        key = record.key.double().repeat_interleave(group, dim=1)
        scores = record.query.double() @ key.transpose(2, 3) * record.facts.scale
        cap = record.facts.softcap
        scores = scores if cap is None else cap * torch.tanh(scores / cap)
        rows, columns = range(record.rows), range(record.keys)
        masks = [record.visible(n, rows, columns) for n in range(len(scores))]
        for one, mask in zip(scores, masks, strict=True):
            if mask is not None:
                one.masked_fill_(~mask, -torch.inf)
        found.append(torch.softmax(scores, dim=-1).nan_to_num(0.0))
    return found


def ran(runner: Runner, steps: list[list[list[int]]]) -> list[Tensor]:
    return [runner.extend(rows) for rows in steps]


@pytest.mark.parametrize("name", DECODERS)
def test_prompt_and_steps_of_every_family(name: str) -> None:
    model = decoder(name)
    other = quantised(model)
    steps = [rows_of(131), rows_of(1), rows_of(2), rows_of(1)]
    plain = ran(EngineRunner(Engine(model)), steps)
    runner = EngineRunner(Engine(model))
    with ch.watch(model) as seen:
        watched = ran(runner, steps)
        assert seen.records[0].rows == 135  # also while the block runs
    assert all(map(torch.equal, plain, watched)) and not seen.missed and len(seen.runs) == 1
    proof = seen.verify()
    assert proof.exact and [layer.name for layer in seen.layers] == ["L0", "L1", "L2"], str(proof)
    with ch.watch(other) as theirs:
        ran(TorchRunner(other), steps)
    for record, found, wanted in zip(
        seen.records, weights_of(seen), weights_of(theirs), strict=True
    ):
        assert record.facts.causal and found.shape == wanted.shape == (1, 4, 135, 135)
        # the engine rounds activations to 16 bits, keys to half precision
        torch.testing.assert_close(found, wanted, rtol=0, atol=2e-2)
    shown = seen["L2H3"].row(133).double()
    torch.testing.assert_close(shown, weights_of(seen)[2][0, 3, 133], rtol=0, atol=2e-5)


@pytest.mark.parametrize("name", TRANSLATORS)
def test_encoder_decoders(name: str) -> None:
    model, sources = translator(name), rows_of(5, 17, 3)
    with ch.watch(model, values=True) as seen:
        runner = EngineRunner(Engine(model), sources)
        ran(runner, [rows_of(2, 3, 1), rows_of(1, 1, 1)])
    assert seen.verify().exact and not seen.missed and len(seen.runs) == 1
    assert {layer.kind for layer in seen.layers} == {"self", "cross"}
    lengths = [len(source) for source in sources]
    named = dict(zip([layer.name for layer in seen.layers], weights_of(seen), strict=True))
    cross = named["C1"]
    for row, length in enumerate(lengths):
        assert not cross[row, :, :, length:].any()


@pytest.mark.parametrize("name", ["llama", "gemma2"])
def test_batches_are_seen_as_torch_runs_are(name: str) -> None:
    model = decoder(name)
    steps = [rows_of(7, 29, 13), *([rows_of(1, 1, 1)] * 3)]
    with ch.watch(model) as seen:
        ran(EngineRunner(Engine(model)), steps)
    other = quantised(model)
    with ch.watch(other) as theirs:
        ran(TorchRunner(other), steps)
    assert seen.verify().exact and len(seen.runs) == len(theirs.runs) == 1
    for found, wanted in zip(weights_of(seen), weights_of(theirs), strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=2e-2)


def test_long_prompts_and_windows_that_slide() -> None:
    """Rows are handed over many times; layers with a window have only its keys by then."""
    model = decoder("gemma3")
    with ch.watch(model) as seen:
        ran(EngineRunner(Engine(model)), [rows_of(701), *([rows_of(1)] * 3)])
    assert seen.verify().exact and len(seen.runs) == 1 and not seen.missed
    assert [(record.rows, record.keys) for record in seen.records] == [(704, 704)] * 3
    wide = seen["L0H1"].row(700)
    assert int((wide > 0).sum()) == 7 and float(wide.sum()) == pytest.approx(1, abs=1e-5)


def test_unequal_texts_beyond_a_window_are_refused_by_name() -> None:
    model = decoder("gemma3")
    with ch.watch(model) as seen:
        ran(EngineRunner(Engine(model)), [rows_of(401, 7)])
    assert "different lengths" in seen.missed and [layer.name for layer in seen.layers] == ["L2"]
    assert seen.verify().exact


def test_speculation_keeps_what_became_the_text() -> None:
    model = decoder("llama")
    prompt = rows_of(11)[0] * 3

    def text(runner: Runner) -> list[int]:
        ids, logits = [], runner.extend([prompt])
        for _ in range(41):
            ids.append(int(logits[0].argmax()))
            logits = runner.extend([[ids[-1]]])
        return ids

    plain = text(EngineRunner(Engine(model)))
    with ch.watch(model) as seen:
        runner = SpeculativeRunner(EngineRunner(Engine(model)), 5)
        assert text(runner) == plain and runner.steps < 42
        runner.crop(runner.length)
    assert seen.verify().exact and len(seen.runs) == 1
    assert seen.records[0].rows == len(prompt) + 41
    with ch.watch(model) as straight:
        text(EngineRunner(Engine(model)))
    for found, wanted in zip(seen.records, straight.records, strict=True):
        assert torch.equal(found.query, wanted.query) and torch.equal(found.key, wanted.key)
        assert torch.equal(found.logsum, wanted.logsum)


def test_crop_and_reorder_begin_other_runs() -> None:
    model = decoder("llama")
    runner = EngineRunner(Engine(model))
    with ch.watch(model) as seen:
        ran(runner, [rows_of(31), rows_of(1)])
        runner.crop(13)
        ran(runner, [rows_of(3)])
        runner.reorder([0, 0])  # two beams
        ran(runner, [rows_of(1, 1)])
        runner.reorder([1, 0])
        ran(runner, [rows_of(1, 1)])
    rows = [run.records[0].shape for run in seen.runs]
    assert [shape[2] for shape in rows] == [32, 16, 2] and rows[-1][0] == 2
    assert all(run.verify().exact for run in seen.runs)


def test_a_watch_that_begins_later_has_the_keys_from_before() -> None:
    model = decoder("llama")
    runner = EngineRunner(Engine(model))
    runner.extend(rows_of(19))
    with ch.watch(model) as seen:
        runner.extend(rows_of(2))
    runner.extend(rows_of(1))
    assert [(record.rows, record.keys) for record in seen.records] == [(2, 21)] * 3
    assert seen.verify().exact


def test_parts_of_a_model_and_two_watches() -> None:
    model = decoder("qwen")
    with ch.watch(model, layers=[1]) as one, ch.watch(model.stack.blocks[2]) as two:
        runner = EngineRunner(Engine(model))
        ran(runner, [rows_of(5), rows_of(1)])
    assert [layer.path for layer in one.layers] == ["stack.blocks.1.attention"]
    assert [layer.path for layer in two.layers] == ["attention"] and two.records[0].rows == 6
    assert one.verify().exact and two.verify().exact


def test_a_falsified_record_is_found() -> None:
    model = decoder("llama")
    with ch.watch(model) as seen:
        ran(EngineRunner(Engine(model)), [rows_of(23), rows_of(1)])
    seen.records[1].key[0, 1, 5] += 0.05
    assert not seen.verify().exact


def test_generation_stays_on_the_engine_unless_a_hook_changes_the_model() -> None:
    model = decoder("llama")
    loaded = loaded_of(model)
    with ch.watch(loaded), ch.watch(loaded.model):
        assert isinstance(make_runner(loaded), EngineRunner)
        handle = model.register_forward_hook(lambda *_: None)
        assert isinstance(make_runner(loaded), TorchRunner)
        handle.remove()
        found: list[Any] = []
        other = threading.Thread(target=lambda: found.append(engine_supports(loaded)))
        other.start()
        other.join()
        assert found == [False]  # torch tells the watch of the other thread that it ran there
    assert engine_supports(loaded)


def test_nothing_is_written_once_the_watch_has_ended() -> None:
    model = decoder("llama")
    runner = EngineRunner(Engine(model))
    with ch.watch(model):
        runner.extend(rows_of(3))
        assert isinstance(runner._seen_rows, SeenRows) and len(runner._seen_rows) == 3
    runner.extend(rows_of(1))
    assert runner._seen_rows is None and runner._step.seen_row == 0
    assert SIZES["vocab"] == runner.vocab
