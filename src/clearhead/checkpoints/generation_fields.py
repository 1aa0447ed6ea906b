"""Every known field of generation_config.json, and every sampling key of GGUF files.

A field is read (:data:`READ`), harmless (:data:`HARMLESS`, with the reason), or refused
(:data:`REFUSED`): ``generate`` and ``beam_search`` then say its name, unless its value is neutral.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from clearhead.arguments import flag, real_number, shown, whole_number
from clearhead.errors import InputError

Reader = Callable[[str, Any], Any]  # name and value of a field → the checked value


def whole(least: int | None = None) -> Reader:
    """A whole number."""
    return lambda name, value: whole_number(name, value, least=least)


def real(*, least: int | None = None, above: int | None = None, most: int | None = None) -> Reader:
    """A finite number."""
    return lambda name, value: real_number(name, value, least=least, above=above, most=most)


def tokens(name: str, value: Any) -> tuple[int, ...]:
    """One token id, or a list of them."""
    several = value if isinstance(value, list) else [value]
    return tuple(whole_number(name, id) for id in several)


def words(name: str, value: Any) -> tuple[tuple[int, ...], ...]:
    """A list of lists of token ids, none of them empty."""
    if not isinstance(value, list) or not all(isinstance(word, list) and word for word in value):
        raise InputError(f"{name} must be lists of token ids, none of them empty.")
    return tuple(tokens(name, word) for word in value)


def texts(name: str, value: Any) -> tuple[str, ...]:
    """One text, or a list of them, none of them empty."""
    several = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) and text for text in several):
        raise InputError(f"{name} must be a text or a list of texts; got {shown(value)}.")
    return tuple(several)


def one_token(name: str, value: Any) -> int:
    """One token id; a list of one is fine."""
    found = tokens(name, value)
    if len(found) != 1:
        raise InputError(f"{name} must be one token; got {len(found)}, one for each text.")
    return found[0]


def stopping(name: str, value: Any) -> bool | str:
    """True, False or "never"."""
    return "never" if value == "never" else flag(name, value)


# field of the file → our name and how it is read
READ: dict[str, tuple[str, Reader]] = {
    "bos_token_id": ("bos", one_token),
    "eos_token_id": ("eos", tokens),
    "decoder_start_token_id": ("start", one_token),
    "forced_bos_token_id": ("forced_first", one_token),
    "forced_eos_token_id": ("forced_last", tokens),
    "max_new_tokens": ("max_tokens", whole(1)),
    "max_length": ("max_length", whole(1)),
    "min_new_tokens": ("min_tokens", whole(0)),
    "min_length": ("min_length", whole(0)),
    "stop_strings": ("stop", texts),
    "do_sample": ("samples", flag),
    "temperature": ("temperature", real(least=0)),
    "top_k": ("top_k", whole(0)),
    "top_p": ("top_p", real(above=0, most=1)),
    "min_p": ("min_p", real(least=0, most=1)),
    "typical_p": ("typical", real(above=0, most=1)),
    "repetition_penalty": ("repetition_penalty", real(above=0)),
    "no_repeat_ngram_size": ("no_repeat_ngram_size", whole(0)),
    "bad_words_ids": ("bad_words", words),
    "suppress_tokens": ("suppressed", tokens),
    "begin_suppress_tokens": ("suppressed_first", tokens),
    "num_beams": ("beams", whole(1)),
    "length_penalty": ("length_penalty", real()),
    "early_stopping": ("early_stopping", stopping),
    "renormalize_logits": ("renormalise", flag),
}

SPEED = "it changes speed and memory, not the text"
RETURNED = "it selects what transformers' own function returns"
DRAFTS = "it configures a draft model or drafts, and drafts do not change the text"
RECORD = "it says who wrote the file"
HARMLESS: dict[str, str] = {
    **dict.fromkeys(
        ("use_cache", "cache_implementation", "cache_config", "max_cache_len", "use_mtp",
         "low_memory", "prefill_chunk_size", "compile_config", "disable_compile",
         "continuous_batching_config"), SPEED,
    ),
    **dict.fromkeys(
        ("output_attentions", "output_hidden_states", "output_scores", "output_logits",
         "return_dict_in_generate"), RETURNED,
    ),
    **dict.fromkeys(
        ("is_assistant", "num_assistant_tokens", "num_assistant_tokens_schedule",
         "assistant_confidence_threshold", "prompt_lookup_num_tokens", "max_matching_ngram_size",
         "assistant_early_exit", "assistant_lookbehind", "target_lookbehind",
         "assistant_ensemble_weight", "speculation_type"), DRAFTS,
    ),
    **dict.fromkeys(("transformers_version", "_from_model_config", "_commit_hash"), RECORD),
    "pad_token_id": "texts that have ended leave the batch, so nothing is padded",
    "num_return_sequences": "the caller says how many texts it wants: samples= and best=",
    "remove_invalid_values": "it changes NaN and infinite logits only, and those are refused",
}  # fmt: skip

# fields that change the text in a way that is not offered → the values that change nothing
REFUSED: dict[str, tuple[Any, ...]] = {
    "max_time": (),
    "top_h": (),
    "epsilon_cutoff": (0,),
    "eta_cutoff": (0,),
    "encoder_repetition_penalty": (1,),
    "encoder_no_repeat_ngram_size": (0,),
    "exponential_decay_length_penalty": (),
    "sequence_bias": ({}, []),
    "token_healing": (False,),
    "guidance_scale": (1,),
    "watermarking_config": (),
    "penalty_alpha": (0,),
    "dola_layers": (),
    "diversity_penalty": (0,),
    "num_beam_groups": (1,),
    "constraints": ([],),
    "force_words_ids": ([],),
}
SAMPLING_ONLY = frozenset({"top_h", "epsilon_cutoff", "eta_cutoff"})  # nothing to greedy decoding

# The same for GGUF files: keys after "general.sampling."
GGUF_READ: dict[str, tuple[str, Reader]] = {
    "temp": ("temperature", real()),
    "top_k": ("top_k", whole()),
    "top_p": ("top_p", real()),
    "min_p": ("min_p", real()),
    "penalty_repeat": ("repetition_penalty", real(above=0)),
    "penalty_last_n": ("penalty_last_n", whole()),
}
GGUF_HARMLESS: dict[str, str] = {
    "xtc_threshold": "it is used with xtc_probability only, which is refused",
    "mirostat_tau": "it is used with mirostat only, which is refused",
    "mirostat_eta": "it is used with mirostat only, which is refused",
}
GGUF_REFUSED: dict[str, tuple[Any, ...]] = {
    "sequence": ("",),
    "xtc_probability": (0,),
    "mirostat": (0,),
}
# The tokens after which llama.cpp ends a text: "tokenizer.ggml.….token_id"
GGUF_ENDS = ("eos", "eot", "eom", "fim_pad", "fim_rep", "fim_sep")


def read_fields(
    fields: Mapping[str, Any], table: Mapping[str, tuple[str, Reader]], where: str = ""
) -> dict[str, Any]:
    """The fields of ``table`` that are given and not null, checked, under our names."""
    return {
        name: read(f"{where}{field}", fields[field])
        for field, (name, read) in table.items()
        if fields.get(field) is not None
    }


def refused_fields(
    fields: Mapping[str, Any], table: Mapping[str, tuple[Any, ...]]
) -> tuple[tuple[str, str], ...]:
    """Names and values of the fields that would change the text in a way that is not offered."""
    return tuple(
        (name, shown(fields[name]))
        for name, neutral in table.items()
        if fields.get(name) is not None and not any(fields[name] == value for value in neutral)
    )
