"""The families of ``transformers`` in the table: decoders, encoders, both, images, sound, mixtures.

A family without a remark takes the sizes of ``tiny_transformers.py`` as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from watched.subject import Made, Subject
from watched.tiny_transformers import config_of, model_of

Options = dict[str, Any]
CONVOLUTIONS: Options = {
    "conv_dim": (16, 16), "conv_kernel": (4, 3), "conv_stride": (3, 2),
    "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
}  # fmt: skip
LATENT: Options = {
    "num_key_value_heads": 6, "qk_rope_head_dim": 4, "qk_nope_head_dim": 4, "v_head_dim": 8,
    "q_lora_rank": 16, "kv_lora_rank": 16, "n_group": 1, "topk_group": 1, "head_dim": 4,
    "first_k_dense_replace": 1,
}  # fmt: skip


def plain(families: str, options: Options | None = None) -> dict[str, Options]:
    """Families that need no options, or all the same."""
    return {family: options or {} for family in families.split()}


DECODERS: dict[str, Options] = {
    **plain(
        """llama mistral mixtral qwen2 qwen2_moe qwen3 qwen3_moe gemma gemma2 gemma3_text phi phi3
        gpt2 gpt_neox gptj gpt_bigcode opt bloom falcon mpt stablelm starcoder2 olmo olmo2 cohere
        cohere2 granite granitemoe glm glm4 smollm3 persimmon nemotron gpt_oss diffllama helium
        ernie4_5 biogpt xglm ctrl openai-gpt xlnet arcee exaone4 falcon_h1 modernbert-decoder lfm2
        doge seed_oss hunyuan_v1_dense phimoe apertus bitnet"""
    ),
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "window_size": 5},
    "codegen": {"n_embd": 32, "n_head": 4},
    "deepseek_v2": LATENT,
    "deepseek_v3": LATENT,
    "qwen3_next": {"layer_types": ["linear_attention", "full_attention"]},
}  # fmt: skip
ENCODERS: dict[str, Options] = {
    **plain(
        """bert roberta distilbert electra albert deberta deberta-v2 mpnet camembert xlm-roberta
        modernbert convbert squeezebert longformer layoutlm esm roformer megatron-bert ibert
        nystromformer xlm flaubert rembert data2vec-text eurobert nomic_bert canine"""
    ),
    "mobilebert": {"intra_bottleneck_size": 24},
    "big_bird": {"block_size": 4, "num_random_blocks": 1, "attention_type": "block_sparse"},
}  # fmt: skip
SEQUENCE_TO_SEQUENCE: dict[str, Options] = {
    **plain(
        """t5 mt5 umt5 bart mbart pegasus pegasus_x marian m2m_100 blenderbot prophetnet led longt5
        switch_transformers fsmt plbart mvp t5gemma"""
    ),
    "bigbird_pegasus": {"block_size": 4, "num_random_blocks": 1, "attention_type": "block_sparse"},
}
IMAGES: dict[str, Options] = {
    **plain(
        "vit deit beit dinov2 dinov3_vit vit_mae ijepa data2vec-vision"
    ),
    "swin": {"embed_dim": 12, "depths": [2, 1], "num_heads": [2, 3], "window_size": 2},
    "swinv2": {"embed_dim": 12, "depths": [2, 1], "num_heads": [2, 3], "window_size": 2},
    "yolos": {"image_size": [16, 16], "num_detection_tokens": 5},
    "segformer": {
        "num_encoder_blocks": 2, "depths": [1, 1], "hidden_sizes": [12, 24],
        "num_attention_heads": [2, 3], "sr_ratios": [2, 1], "patch_sizes": [3, 3],
        "strides": [2, 2], "mlp_ratios": [2, 2],
    },
    "pvt": {
        "num_encoder_blocks": 2, "depths": [1, 1], "hidden_sizes": [12, 24],
        "num_attention_heads": [2, 3], "sequence_reduction_ratios": [2, 1],
        "patch_sizes": [4, 2], "strides": [4, 2], "mlp_ratios": [2, 2],
    },
    "mobilevit": {
        "hidden_sizes": [12, 18, 24], "neck_hidden_sizes": [4, 4, 8, 8, 8, 8, 16],
        "num_attention_heads": 3,
    },
    "hiera": {
        "image_size": [16, 16], "patch_size": [3, 3], "patch_stride": [2, 2],
        "patch_padding": [1, 1], "depths": [1, 1], "num_heads": [2, 4], "embed_dim": 8,
        "masked_unit_size": [2, 2], "num_query_pool": 1, "query_stride": [2, 2],
    },
}  # fmt: skip
VIDEOS: dict[str, Options] = {
    "videomae": {"num_frames": 4, "tubelet_size": 2},
    "timesformer": {"num_frames": 4},
    "vivit": {"num_frames": 4, "tubelet_size": [2, 4, 4]},
}
WAVES = plain("wav2vec2 hubert wavlm unispeech unispeech-sat sew data2vec-audio", CONVOLUTIONS)
PICTURES_AND_TEXTS = plain(
    "clip siglip chinese_clip altclip clipseg groupvit blip git metaclip_2 owlvit flava"
)


@dataclass(frozen=True)
class Kind:
    """A list of families that are made and called alike."""

    families: dict[str, Options]
    model: str
    inputs: dict[str, Tensor]
    options: Options = field(default_factory=dict)


def kinds() -> list[Kind]:
    """All of them, with the inputs that they take."""
    torch.manual_seed(1)
    ids, target = torch.randint(4, 90, (2, 13)), torch.randint(4, 90, (2, 7))
    real = torch.ones_like(ids)
    real[1, 10:] = 0  # padding on the right
    picture = torch.randn(2, 3, 16, 16)
    both = {"input_ids": ids, "attention_mask": real, "pixel_values": picture}
    whisper = {
        "num_mel_bins": 5, "max_source_positions": 17, "max_target_positions": 31,
    }  # fmt: skip
    speech = {
        "input_feat_per_channel": 5, "num_conv_layers": 1, "conv_kernel_sizes": [3],
        "conv_channels": 12, "max_source_positions": 40, "max_target_positions": 31,
    }  # fmt: skip
    wave = {"input_values": torch.randn(2, 1200), "decoder_input_ids": target}
    return [
        Kind(DECODERS, "AutoModelForCausalLM", {"input_ids": ids}),
        Kind(ENCODERS, "AutoModel", {"input_ids": ids, "attention_mask": real}),
        Kind(
            SEQUENCE_TO_SEQUENCE,
            "AutoModel",
            {"input_ids": ids, "attention_mask": real, "decoder_input_ids": target},
        ),
        Kind(IMAGES, "AutoModel", {"pixel_values": picture}),
        Kind(VIDEOS, "AutoModel", {"pixel_values": torch.randn(2, 4, 3, 16, 16)}),
        Kind(WAVES, "AutoModel", {"input_values": torch.randn(2, 100)}),
        Kind(
            {"audio-spectrogram-transformer": {"max_length": 16, "num_mel_bins": 16}},
            "AutoModel",
            {"input_values": torch.randn(2, 16, 16)},
        ),
        Kind(
            {"whisper": whisper},
            "AutoModel",
            {"input_features": torch.randn(2, 5, 34), "decoder_input_ids": target},
        ),
        Kind(
            {"speech_to_text": speech},
            "AutoModel",
            {"input_features": torch.randn(2, 20, 5), "decoder_input_ids": target},
        ),
        Kind({"moonshine": {}}, "AutoModel", wave),
        Kind(PICTURES_AND_TEXTS, "AutoModel", both),
        Kind({"vilt": {}}, "AutoModel", both),
        Kind({"imagegpt": {}}, "AutoModel", {"input_ids": ids}),
    ]


def subjects() -> Iterator[Subject]:
    """Every family with eager and with fused attention."""
    for kind in kinds():
        for family, options in kind.families.items():
            for implementation in ("eager", "sdpa"):
                yield _subject(kind, family, options, implementation)


def _subject(kind: Kind, family: str, options: Options, implementation: str) -> Subject:
    def make() -> Made:
        config = config_of(family, **options)
        model = model_of(config, kind.model, implementation)

        def own() -> Any:
            """Weights as eager attention reports them, with the same parameters."""
            twin = model
            if implementation != "eager":
                twin = model_of(config_of(family, **options), kind.model, "eager")
                twin.load_state_dict(model.state_dict())
            return twin(**kind.inputs, output_attentions=True)

        return Made(model, lambda: model(**kind.inputs), own)

    return Subject("transformers", family, implementation, make)
