from __future__ import annotations

import pytest
import torch
import transformers
from torch import Tensor, nn

from clearhead.trace.watching.layer_names import LayerNames
from clearhead.trace.watching.watch import watch


def names_of(*paths: str) -> LayerNames:
    return LayerNames({path: nn.Linear(2, 2) for path in paths})


def test_numbers_come_from_the_path() -> None:
    names = names_of("model.layers.4.attn", "model.layers.7.attn")
    assert names.name("model.layers.7.attn", False, 0) == "L7"
    assert names.name("model.layers.4.attn", False, 0) == "L4"
    assert names.known() == ["L7", "L4"]


def test_layers_are_counted_where_paths_differ_otherwise() -> None:
    names = names_of("down.0.attn", "middle.attn", "up.0.attn")
    paths = ("down.0.attn", "middle.attn", "up.0.attn")
    assert [names.name(path, False, 0) for path in paths] == ["L0", "L1", "L2"]


def test_two_stacks_and_cross_attention() -> None:
    names = names_of("encoder.0.attn", "decoder.0.attn", "decoder.0.cross_attn")
    assert names.two_stacks and names.in_encoder("encoder.0.attn")
    assert names.name("encoder.0.attn", False, 0) == "E0"
    assert names.name("decoder.0.attn", False, 0) == "L0"
    assert names.name("decoder.0.cross_attn", True, 0) == "C0"
    assert not names_of("encoder.0.attn").two_stacks


def test_a_layer_that_runs_again_counts_on_behind_its_kind() -> None:
    names = names_of("layer.attn")
    assert [names.name("layer.attn", False, n) for n in (0, 1, 2, 1)] == ["L0", "L1", "L2", "L1"]
    three = names_of("layers.0.attn", "layers.1.attn", "layers.2.attn")
    calls = [(path, call) for call in range(2) for path in range(3)]
    found = [three.name(f"layers.{path}.attn", False, call) for path, call in calls]
    assert found == ["L0", "L1", "L2", "L3", "L4", "L5"]
    late = names_of("layers.0.attn", "layers.1.attn", "layers.2.attn")
    assert late.name("layers.1.attn", False, 1) == "L4"  # whatever ran before


def test_towers_have_letters_of_their_own_beside_another_one() -> None:
    both = names_of("vision_model.layers.0.attn", "text_model.layers.0.attn", "audio.0.attn")
    paths = ("text_model.layers.0.attn", "vision_model.layers.0.attn", "audio.0.attn")
    assert [both.name(path, False, 0) for path in paths] == ["L0", "V0", "A0"]
    assert both.name("vision_model.layers.0.cross_attn", True, 0) == "C0"
    alone = names_of("vision_model.layers.0.attn", "vision_model.layers.1.attn")
    assert alone.name("vision_model.layers.1.attn", False, 0) == "L1"


class Repeated(nn.Module):
    """Latents that attend to the states and to themselves, with the same layers three times."""

    def __init__(self) -> None:
        super().__init__()
        self.cross = nn.MultiheadAttention(10, 2, batch_first=True)
        self.own = nn.MultiheadAttention(10, 2, batch_first=True)

    def forward(self, latents: Tensor, states: Tensor) -> Tensor:
        for _ in range(3):
            latents = latents + self.cross(latents, states, states, need_weights=False)[0]
            latents = latents + self.own(latents, latents, latents, need_weights=False)[0]
        return latents


@pytest.mark.parametrize("wanted", [["C1"], ["L2"], ["L0", "C2"], [2]])
def test_a_filter_never_renumbers_repeated_calls(wanted: list[int | str]) -> None:
    torch.manual_seed(0)
    net, given = Repeated().eval(), [(torch.randn(1, 3, 10), torch.randn(1, 7, 10)) for _ in "ab"]
    with watch(net) as everything:
        for one in given:
            net(*one)
    with watch(net, layers=wanted) as some:
        for one in given:
            net(*one)
    order = ["C0", "L0", "C1", "L1", "C2", "L2"]
    assert [layer.name for layer in everything.layers] == order
    kept = [name for name in order if name in wanted or int(name[1:]) in wanted]
    for run, whole in zip(some.runs, everything.runs, strict=True):
        assert [layer.name for layer in run.layers] == kept
        for name in kept:
            assert torch.equal(run[name].weights(), whole[name].weights())


def test_heads_of_a_repeated_call_are_chosen_by_its_name() -> None:
    net = Repeated().eval()
    with watch(net, heads=["C1H1"]) as seen:
        net(torch.randn(1, 3, 10), torch.randn(1, 7, 10))
    assert [(record.facts.name, record.head_numbers) for record in seen.records] == [("C1", (1,))]


def names_seen(model: nn.Module, **inputs: Tensor) -> list[str]:
    with torch.no_grad(), watch(model) as seen:
        model(**inputs)
    assert seen.missed == ""
    return [layer.name for layer in seen.layers]


def test_two_towers_of_clip() -> None:
    sizes = {"hidden_size": 12, "intermediate_size": 14, "num_hidden_layers": 2}
    sizes |= {"num_attention_heads": 3, "projection_dim": 8}
    config = transformers.CLIPConfig(
        text_config=sizes | {"vocab_size": 23},
        vision_config=sizes | {"image_size": 20, "patch_size": 10},
        projection_dim=8,
    )
    model = transformers.CLIPModel(config).eval()
    ids, pixels = torch.randint(3, 20, (1, 5)), torch.randn(1, 3, 20, 20)
    assert sorted(names_seen(model, input_ids=ids, pixel_values=pixels)) == ["L0", "L1", "V0", "V1"]
    assert names_seen(model.text_model, input_ids=ids) == ["L0", "L1"]


@pytest.mark.parametrize("grid", [(1, 4, 4), (1, 4, 8), (1, 8, 12)])
def test_the_text_keeps_its_names_whatever_image_came_before(grid: tuple[int, int, int]) -> None:
    """Windows of the image are calls of their own: how many there are goes by its size."""
    rotary = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0}
    text = {
        "vocab_size": 31, "hidden_size": 32, "intermediate_size": 20, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "rope_parameters": rotary,
    }  # fmt: skip
    vision = {
        "depth": 2, "hidden_size": 32, "intermediate_size": 20, "num_heads": 4, "patch_size": 2,
        "out_hidden_size": 32, "fullatt_block_indexes": [1], "window_size": 8,
    }  # fmt: skip
    config = transformers.Qwen2_5_VLConfig(
        text_config=text, vision_config=vision, image_token_id=27, video_token_id=28,
        vision_start_token_id=29, vision_end_token_id=30,
    )  # fmt: skip
    model = transformers.Qwen2_5_VLForConditionalGeneration(config).eval()
    patches = grid[1] * grid[2]
    ids = torch.tensor([[5, 29, *[27] * (patches // 4), 30, 6]])
    names = names_seen(
        model, input_ids=ids, attention_mask=torch.ones_like(ids),
        pixel_values=torch.randn(patches, 3 * 2 * 2 * 2), image_grid_thw=torch.tensor([grid]),
        mm_token_type_ids=(ids == 27).int(),
    )  # fmt: skip
    assert names[-2:] == ["L0", "L1"] and names[0] == "V0" and "V1" in names
    assert len(set(names)) == len(names) and all(name[0] == "V" for name in names[:-2])
