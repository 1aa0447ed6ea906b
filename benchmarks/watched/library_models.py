"""timm, diffusers, x-transformers, open_clip and vit-pytorch, tiny and with random weights."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from watched.subject import Made, Subject, called

Options = dict[str, Any]


def subjects() -> Iterator[Subject]:
    """All of them."""
    for listed in (_timm, _diffusers, _x_transformers, _open_clip, _vit_pytorch):
        yield from listed()


def _picture(size: int = 16) -> Tensor:
    torch.manual_seed(size)
    return torch.randn(2, 3, size, size)


def _ids(length: int = 13) -> Tensor:
    torch.manual_seed(length)
    return torch.randint(4, 90, (2, length))


def _made(
    module: str, name: str, options: Options, *arguments: Any, **named: Any
) -> Callable[[], Made]:
    def make() -> Made:
        torch.manual_seed(0)
        kind = getattr(importlib.import_module(module), name)
        return called(kind(**options), *arguments, **named)

    return make


VIT: Options = {
    "img_size": 16, "patch_size": 4, "embed_dim": 48, "depth": 2, "num_heads": 6, "num_classes": 7,
}  # fmt: skip
STAGES: Options = {
    "img_size": 16, "patch_size": 2, "embed_dim": 12, "depths": (2, 1), "num_heads": (2, 3),
    "window_size": 4, "num_classes": 7,
}  # fmt: skip
TIMM: dict[str, tuple[str, str, Options]] = {
    "vit": ("vision_transformer", "VisionTransformer", VIT),
    "vit, qk-norm": ("vision_transformer", "VisionTransformer", {**VIT, "qk_norm": True}),
    "vit, attention pool": (
        "vision_transformer",
        "VisionTransformer",
        {**VIT, "global_pool": "map", "class_token": False},
    ),
    "deit": ("deit", "VisionTransformerDistilled", VIT),
    "beit": ("beit", "Beit", VIT),
    "eva": ("eva", "Eva", {**VIT, "use_rot_pos_emb": True}),
    "cait": ("cait", "Cait", VIT),
    "xcit": ("xcit", "Xcit", {**VIT, "patch_size": 8}),
    "vit, relative positions": ("vision_transformer_relpos", "VisionTransformerRelPos", VIT),
    "convit": ("convit", "ConVit", {**VIT, "local_up_to_layer": 1}),
    "swin": ("swin_transformer", "SwinTransformer", STAGES),
    "swin v2": ("swin_transformer_v2", "SwinTransformerV2", STAGES),
}


def _timm() -> Iterator[Subject]:
    for family, (module, name, options) in TIMM.items():
        for fused in (True, False):

            def make(
                module: str = module,
                name: str = name,
                options: Options = options,
                fused: bool = fused,
            ) -> Made:
                importlib.import_module("timm.layers").set_fused_attn(fused)
                return _made(f"timm.models.{module}", name, options, _picture())()

            yield Subject("timm", family, "fused" if fused else "unfused", make)


UNET: Options = {
    "sample_size": 8, "block_out_channels": (16, 32), "layers_per_block": 1, "norm_num_groups": 4,
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"), "attention_head_dim": 4,
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"), "cross_attention_dim": 24,
}  # fmt: skip


def _diffusers() -> Iterator[Subject]:
    for name in ("AttnProcessor2_0", "AttnProcessor", "SlicedAttnProcessor"):

        def make(name: str = name) -> Made:
            torch.manual_seed(0)
            diffusers = importlib.import_module("diffusers")
            kind = getattr(importlib.import_module("diffusers.models.attention_processor"), name)
            unet = diffusers.UNet2DConditionModel(**UNET)
            unet.set_attn_processor(kind(2) if name.startswith("Sliced") else kind())
            states = torch.randn(2, 13, 24)
            return called(unet, torch.randn(2, 4, 8, 8), torch.tensor([3]), states)

        yield Subject("diffusers", "UNet2DConditionModel", name, make)
    dit = {
        "num_attention_heads": 3, "attention_head_dim": 8, "in_channels": 4, "num_layers": 2,
        "sample_size": 8, "patch_size": 2, "norm_num_groups": 4,
    }  # fmt: skip
    noise, step = torch.randn(2, 4, 8, 8), torch.tensor([3, 3])
    yield Subject("diffusers", "DiTTransformer2DModel", "sdpa", _made(
        "diffusers", "DiTTransformer2DModel", dit, noise, step, torch.tensor([1, 2])))  # fmt: skip
    sd3 = {
        "sample_size": 8, "patch_size": 2, "in_channels": 4, "num_layers": 2,
        "attention_head_dim": 8, "num_attention_heads": 3, "joint_attention_dim": 24,
        "caption_projection_dim": 24, "pooled_projection_dim": 16, "out_channels": 4,
        "pos_embed_max_size": 8,
    }  # fmt: skip
    yield Subject("diffusers", "SD3Transformer2DModel", "sdpa", _made(
        "diffusers", "SD3Transformer2DModel", sd3, noise, torch.randn(2, 13, 24),
        torch.randn(2, 16), step))  # fmt: skip
    vae = {
        "block_out_channels": (16,), "norm_num_groups": 4, "latent_channels": 4,
        "down_block_types": ("DownEncoderBlock2D",), "up_block_types": ("UpDecoderBlock2D",),
    }  # fmt: skip
    yield Subject("diffusers", "AutoencoderKL", "sdpa", _made(
        "diffusers", "AutoencoderKL", vae, torch.randn(2, 3, 8, 8)))  # fmt: skip


def _x_transformers() -> Iterator[Subject]:
    variants: dict[str, Options] = {
        "plain": {}, "flash": {"attn_flash": True}, "rotary": {"rotary_pos_emb": True},
        "qk-norm": {"attn_qk_norm": True}, "ALiBi": {"alibi_pos_bias": True},
        "one key head": {"attn_one_kv_head": True}, "grouped heads": {"attn_kv_heads": 2},
        "talking heads": {"attn_pre_talking_heads": True, "attn_post_talking_heads": True},
        "memory keys": {"attn_num_mem_kv": 3}, "T5 bias": {"rel_pos_bias": True},
        "gated values": {"attn_gate_values": True}, "sparse top-k": {"attn_sparse_topk": 3},
        "softclamp": {"attn_softclamp_logits": True},
    }  # fmt: skip
    for name, options in variants.items():

        def make(options: Options = options) -> Made:
            torch.manual_seed(0)
            x = importlib.import_module("x_transformers")
            layers = x.Decoder(dim=48, depth=2, heads=6, attn_dim_head=8, **options)
            return called(
                x.TransformerWrapper(num_tokens=97, max_seq_len=64, attn_layers=layers), _ids()
            )

        yield Subject("x-transformers", "Decoder", name, make)
    yield Subject("x-transformers", "XTransformer", "plain", _x_pair)


def _x_pair() -> Made:
    torch.manual_seed(0)
    x = importlib.import_module("x_transformers")
    options = {
        f"{side}_{name}": value
        for side in ("enc", "dec")
        for name, value in {
            "num_tokens": 97, "depth": 2, "heads": 6, "max_seq_len": 64, "attn_dim_head": 8,
        }.items()
    }  # fmt: skip
    return called(x.XTransformer(dim=48, **options), _ids(), _ids(7))


def _open_clip() -> Iterator[Subject]:
    vision = {"layers": 2, "width": 48, "head_width": 8, "patch_size": 4, "image_size": 16}
    text = {"context_length": 13, "vocab_size": 97, "width": 48, "heads": 6, "layers": 2}
    both = {"embed_dim": 24, "vision_cfg": vision, "text_cfg": text}
    for name in ("CLIP", "CustomTextCLIP"):
        maker = _made("open_clip.model", name, both, _picture(), _ids())
        yield Subject("open_clip", name, "nn.MultiheadAttention", maker)


PLAIN: Options = {
    "image_size": 16, "patch_size": 4, "num_classes": 7, "dim": 48, "depth": 2, "heads": 6,
    "mlp_dim": 40,
}  # fmt: skip
VIT_PYTORCH: dict[str, tuple[str, Options]] = {
    "vit.ViT": ("vit", {**PLAIN, "dim_head": 8}),
    "simple_vit.SimpleViT": ("simple_vit", {**PLAIN, "dim_head": 8}),
    "simple_flash_attn_vit.SimpleViT": ("simple_flash_attn_vit", {**PLAIN, "dim_head": 8}),
    "simple_vit_with_qk_norm.SimpleViT": ("simple_vit_with_qk_norm", {**PLAIN, "dim_head": 8}),
    "simple_vit_with_register_tokens.SimpleViT": (
        "simple_vit_with_register_tokens", {**PLAIN, "dim_head": 8},
    ),
    "deepvit.DeepViT": ("deepvit", {**PLAIN, "dim_head": 8}),
    "cait.CaiT": ("cait", {**PLAIN, "cls_depth": 1, "dim_head": 8}),
    "xcit.XCiT": ("xcit", {**PLAIN, "cls_depth": 1, "dim_head": 8}),
    "parallel_vit.ViT": ("parallel_vit", {**PLAIN, "dim_head": 8}),
    "vit_for_small_dataset.ViT": ("vit_for_small_dataset", {**PLAIN, "dim_head": 8}),
    "rvt.RvT": ("rvt", PLAIN),
    "pit.PiT": ("pit", {**PLAIN, "depth": (1, 1), "dim_head": 8}),
    "cross_vit.CrossViT": (
        "cross_vit",
        {"image_size": 16, "num_classes": 7, "depth": 1, "sm_dim": 48, "sm_patch_size": 4,
         "sm_enc_heads": 6, "lg_dim": 48, "lg_patch_size": 8, "lg_enc_heads": 6,
         "cross_attn_heads": 6},
    ),
    "normalized_vit.nViT": ("normalized_vit", {**PLAIN, "dim_head": 8}),
    "learnable_memory_vit.ViT": ("learnable_memory_vit", {**PLAIN, "dim_head": 8}),
}  # fmt: skip


def _vit_pytorch() -> Iterator[Subject]:
    for family, (module, options) in VIT_PYTORCH.items():
        name = family.partition(".")[2]
        maker = _made(f"vit_pytorch.{module}", name, options, _picture())
        yield Subject("vit-pytorch", family, "softmax" if "flash" not in family else "sdpa", maker)
