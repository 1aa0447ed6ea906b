"""Training new subword vocabularies on texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from clearhead.errors import InputError
from clearhead.text.subwords.file import LARGEST_VOCABULARY
from clearhead.text.subwords.rust_guard import rust_errors
from clearhead.text.subwords.tokenizer import SubwordTokenizer
from clearhead.text.tokenizer import check_text

if TYPE_CHECKING:
    import tokenizers
    from tokenizers.trainers import Trainer

PLAIN_NAMES = {"pad": "<pad>", "bos": "<bos>", "eos": "<eos>"}
UNKNOWN_NAMES = PLAIN_NAMES | {"unk": "<unk>"}
BERT_NAMES = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}


def train_bpe(
    texts: Iterable[str] | str, size: int, *, add_bos: bool = False, add_eos: bool = False
) -> SubwordTokenizer:
    """Byte-level BPE (Sennrich et al. 2016, Radford et al. 2019): no text is unknown to it.

    Of the ``size`` entries, 3 are ``<pad> <bos> <eos>`` and 256 the bytes.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    _check_size(size, len(PLAIN_NAMES) + 256)
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(PLAIN_NAMES.values()),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    return _train(backend, trainer, texts, size, PLAIN_NAMES, _ends(add_bos, add_eos))


def train_wordpiece(
    texts: Iterable[str] | str, size: int, *, lowercase: bool = True
) -> SubwordTokenizer:
    """WordPiece as BERT has it (Devlin et al. 2019), ``[CLS] text [SEP]``."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    _check_size(size, len(BERT_NAMES) + 1)
    backend = Tokenizer(models.WordPiece(unk_token=BERT_NAMES["unk"]))
    backend.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, special_tokens=list(BERT_NAMES.values()), show_progress=False
    )
    return _train(backend, trainer, texts, size, BERT_NAMES, "[CLS] $A [SEP]")


def train_unigram(
    texts: Iterable[str] | str, size: int, *, add_bos: bool = False, add_eos: bool = False
) -> SubwordTokenizer:
    """Unigram (Kudo 2018) with SentencePiece's ``▁`` for spaces, as T5 has it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    _check_size(size, len(UNKNOWN_NAMES) + 1)
    backend = Tokenizer(models.Unigram())
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=size,
        special_tokens=list(UNKNOWN_NAMES.values()),
        unk_token=UNKNOWN_NAMES["unk"],
        show_progress=False,
    )
    return _train(backend, trainer, texts, size, UNKNOWN_NAMES, _ends(add_bos, add_eos))


def _train(
    backend: tokenizers.Tokenizer,
    trainer: Trainer,
    texts: Iterable[str] | str,
    size: int,
    names: dict[str, str],
    template: str,
) -> SubwordTokenizer:
    from tokenizers.processors import TemplateProcessing

    several = [texts] if isinstance(texts, str) else texts
    with rust_errors("training the tokenizer", InputError):
        backend.train_from_iterator(_checked(several), trainer)
        specials = [(name, backend.token_to_id(name)) for name in names.values()]
        backend.post_processor = TemplateProcessing(single=template, special_tokens=specials)
        trained = SubwordTokenizer(backend, names=names)
    if trained.size > size:
        raise InputError(
            f"a vocabulary of {size} cannot hold the different characters of these texts; "
            f"they need at least {trained.size}."
        )
    return trained


def _checked(texts: Iterable[str]) -> Iterator[str]:
    empty = True
    for text in texts:
        empty = empty and not text
        yield check_text(text)
    if empty:
        raise InputError("a tokenizer is trained on texts; these are empty.")


def _check_size(size: int, smallest: int) -> None:
    if not smallest <= size < LARGEST_VOCABULARY:
        raise InputError(
            f"the size of this kind of vocabulary is {smallest} … {LARGEST_VOCABULARY - 1}; "
            f"{size} came."
        )


def _ends(add_bos: bool, add_eos: bool) -> str:
    return ("<bos> " if add_bos else "") + "$A" + (" <eos>" if add_eos else "")
