"""From a GGUF file's vocabulary to a tokenizer, kind by kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from clearhead.errors import CheckpointError
from clearhead.text.gguf.splits import pre_tokenizer, text_split
from clearhead.text.gguf.vocabulary import (
    CONTROL,
    NORMAL,
    UNKNOWN,
    USER_DEFINED,
    GgufVocabulary,
)
from clearhead.text.spelling import META_SPACE
from clearhead.text.subwords.file import check_charsmap
from clearhead.text.subwords.rust_guard import rust_errors
from clearhead.text.subwords.tokenizer import SubwordTokenizer

if TYPE_CHECKING:
    import tokenizers


def tokenizer_from_gguf(metadata: Mapping[str, Any]) -> SubwordTokenizer:
    """The tokenizer that GGUF metadata (lists or arrays, numbers and texts) describes.

    The settings mean what they mean to llama.cpp, which the format comes from; `transformers` reads
    fewer of them (it passes over ``smollm``, for one, and so leaves digits with their spaces).
    """
    vocabulary = GgufVocabulary(metadata)
    if vocabulary.kind not in KINDS:
        raise CheckpointError(
            f"the GGUF file has a vocabulary of kind {vocabulary.kind!r} (tokenizer.ggml.model); "
            f"known: {', '.join(KINDS)}.",
            hint="use the model's hub folder with its tokenizer.json.",
        )
    template = metadata.get("tokenizer.chat_template")
    with rust_errors("building the tokenizer of the GGUF file"):
        backend = KINDS[vocabulary.kind](vocabulary)
        _add_whole_tokens(backend, vocabulary)
        named = vocabulary.special_ids.items()
        names = {name: str(backend.id_to_token(id)) for name, id in named}
        return SubwordTokenizer(
            backend, names=names, chat_template=template if isinstance(template, str) else None
        )


def _byte_level(vocabulary: GgufVocabulary) -> tokenizers.Tokenizer:
    from tokenizers import Tokenizer, decoders, models, normalizers

    split = text_split(vocabulary.pre)
    model = models.BPE(
        vocab=vocabulary.ids, merges=vocabulary.merges, ignore_merges=split.whole_words
    )
    backend = Tokenizer(model)
    if split.compose:
        backend.normalizer = normalizers.NFC()
    backend.pre_tokenizer = pre_tokenizer(split)
    backend.decoder = decoders.ByteLevel()
    _add_ends(backend, vocabulary, bos=split.add_bos, eos=False)
    return backend


def _sentencepiece(vocabulary: GgufVocabulary) -> tokenizers.Tokenizer:
    from tokenizers import Tokenizer, decoders, models, normalizers

    unknown = vocabulary.special_ids.get("unk")
    model = models.BPE(
        vocab=vocabulary.ids,
        merges=_scored_merges(vocabulary),
        unk_token=None if unknown is None else vocabulary.tokens[unknown],
        fuse_unk=True,
        byte_fallback=True,
    )
    backend = Tokenizer(model)
    prefix = vocabulary.flag("add_space_prefix", True)
    spaces = normalizers.Replace(" ", META_SPACE)
    first = [normalizers.Prepend(META_SPACE)] if prefix else []
    backend.normalizer = normalizers.Sequence([*first, spaces])
    last = [decoders.Strip(" ", 1, 0)] if prefix else []
    backend.decoder = decoders.Sequence(
        [decoders.Replace(META_SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), *last]
    )
    _add_ends(backend, vocabulary, bos=True, eos=False)
    return backend


def _wordpiece(vocabulary: GgufVocabulary) -> tokenizers.Tokenizer:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    pieces = _bert_pieces(vocabulary)
    ids = {piece: id for id, piece in enumerate(pieces)}
    unknown, first, last = (
        _special(vocabulary, ids, *names)
        for names in (("[UNK]", "unk"), ("[CLS]", "cls", "bos"), ("[SEP]", "sep", "eos"))
    )
    backend = Tokenizer(models.WordPiece(vocab=ids, unk_token=unknown[0]))
    normal = zip(pieces, vocabulary.types, strict=True)
    cased = any(kind == NORMAL and piece != piece.lower() for piece, kind in normal)
    backend.normalizer = normalizers.BertNormalizer(lowercase=not cased)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    backend.post_processor = processors.TemplateProcessing(
        single=f"{first[0]} $A {last[0]}", special_tokens=[first, last]
    )
    return backend


def _unigram(vocabulary: GgufVocabulary) -> tokenizers.Tokenizer:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    scored = list(zip(vocabulary.tokens, vocabulary.scores, strict=True))
    backend = Tokenizer(models.Unigram(scored, unk_id=vocabulary.special_ids.get("unk")))
    charsmap = vocabulary.charsmap()
    if charsmap:
        check_charsmap(charsmap, where="the GGUF file")
        backend.normalizer = normalizers.Precompiled(charsmap)
    scheme = "always" if vocabulary.flag("add_space_prefix", True) else "never"
    spaces = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    squeeze = vocabulary.flag("remove_extra_whitespaces", True)
    cuts = [pre_tokenizers.WhitespaceSplit()] if squeeze else []
    backend.pre_tokenizer = pre_tokenizers.Sequence([*cuts, spaces])
    backend.decoder = decoders.Metaspace(prepend_scheme=scheme)
    _add_ends(backend, vocabulary, bos=False, eos=True)
    return backend


KINDS = {"gpt2": _byte_level, "llama": _sentencepiece, "bert": _wordpiece, "t5": _unigram}


def _scored_merges(vocabulary: GgufVocabulary) -> list[tuple[str, str]]:
    """Every way to make a normal token of two others, best token first.

    SentencePiece merges the pair whose result has the best score; a rank for each pair says the
    same to a BPE model. Equal scores keep the vocabulary's order.
    """
    ids, scores, tokens = vocabulary.ids, vocabulary.scores, vocabulary.tokens
    normal = [ids[token] for token in vocabulary.of_type(NORMAL, USER_DEFINED)]
    merges: list[tuple[str, str]] = []
    lengths = {len(token) for token in tokens}
    for id in sorted(normal, key=lambda id: -scores[id]):
        token = tokens[id]
        places = (p for p in range(1, len(token)) if p in lengths and len(token) - p in lengths)
        cuts = [(token[:place], token[place:]) for place in places]
        known = [(ids[left], ids[right]) for left, right in cuts if left in ids and right in ids]
        # the vocabulary's own strings: half a million pairs would have a million new ones
        merges.extend((tokens[left], tokens[right]) for left, right in sorted(known))
    return merges


def _bert_pieces(vocabulary: GgufVocabulary) -> list[str]:
    """The pieces as BERT spells them: GGUF marks the beginnings of words, BERT the rest."""
    if not any(token.startswith(META_SPACE) for token in vocabulary.tokens):
        return vocabulary.tokens
    return [_bert_piece(token) for token in vocabulary.tokens]


def _bert_piece(token: str) -> str:
    if token.startswith("[") and token.endswith("]"):
        return token
    return token[1:] if token.startswith(META_SPACE) else f"##{token}"


def _special(
    vocabulary: GgufVocabulary, ids: dict[str, int], piece: str, *names: str
) -> tuple[str, int]:
    for name in names:
        if name in vocabulary.special_ids:
            id = vocabulary.special_ids[name]
            return vocabulary.tokens[id], id
    if piece not in ids:
        raise CheckpointError(f"the GGUF vocabulary of a BERT model has no {piece}.")
    return piece, ids[piece]


def _add_ends(
    backend: tokenizers.Tokenizer, vocabulary: GgufVocabulary, *, bos: bool, eos: bool
) -> None:
    """BOS before and EOS after each text, where the file (or else its kind) wants them."""
    from tokenizers.processors import TemplateProcessing

    ids = vocabulary.special_ids
    before = vocabulary.flag("add_bos_token", bos and "bos" in ids)
    after = vocabulary.flag("add_eos_token", eos and "eos" in ids)
    ends = [name for name, wanted in (("bos", before), ("eos", after)) if wanted]
    for name in ends:
        if name not in ids:
            raise CheckpointError(f"the GGUF file adds {name} to texts and does not say its id.")
    first, last = (vocabulary.tokens[ids[name]] if name in ends else "" for name in ("bos", "eos"))
    backend.post_processor = TemplateProcessing(
        single=[part for part in (first, "$A", last) if part],
        special_tokens=[(vocabulary.tokens[ids[name]], ids[name]) for name in ends],
    )


def _add_whole_tokens(backend: tokenizers.Tokenizer, vocabulary: GgufVocabulary) -> None:
    """Control and user-defined tokens are found in a text before anything else cuts it."""
    from tokenizers import AddedToken

    kinds = zip(vocabulary.tokens, vocabulary.types, strict=True)
    control, defined = [], []
    for id, (_, kind) in enumerate(kinds):
        piece = backend.id_to_token(id)
        if kind in (CONTROL, UNKNOWN):
            control.append(AddedToken(piece, normalized=False, special=True))
        elif kind == USER_DEFINED:
            defined.append(AddedToken(piece, normalized=False, special=False))
    backend.add_special_tokens(control)
    backend.add_tokens(defined)
