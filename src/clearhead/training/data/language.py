"""The texts of a language model: which are learned, which are held out, and what to say of them."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np

from clearhead.errors import InputError
from clearhead.training.data.corpus import Corpus, SourceFile, nothing_in, python_reference
from clearhead.training.data.source import Content
from clearhead.training.data.split import cuts
from clearhead.training.data.standard_input import copied
from clearhead.training.data.tokens.data import TokenData
from clearhead.training.data.tokens.survey import Survey, surveyed
from clearhead.training.data.tokens.tokenising import Surveyed
from clearhead.training.events import Event, Warned
from clearhead.training.plan import STANDARD_INPUT, Plan

FEW = 20  # tokens: a loss over fewer says little


def language_corpora(
    plan: Plan, seed: int, content: Mapping[str, Content], tokens: Path | None, stack: ExitStack
) -> Generator[Event, None, list[Surveyed]]:
    """The texts, surveyed and split; and the texts to validate on, if they are given."""
    if STANDARD_INPUT in plan.texts and STANDARD_INPUT in plan.validation:
        raise InputError("standard input can be learned or validated on, not both.")
    corpus = _corpus("texts", plan, content, tokens, stack)
    survey = yield from surveyed(corpus)
    yield from _left_out(corpus)
    if not len(survey.kept):
        raise InputError(nothing_in(plan.texts))
    lengths = survey.characters.copy()
    if not plan.validation:
        kept = survey.kept.tolist()
        lengths[kept] = cuts(
            [survey.digest(n) for n in kept], lengths[kept].tolist(), plan.held_out, seed
        )
        return [Surveyed(corpus, survey, lengths)]
    held = _corpus("validation", plan, content, tokens, stack)
    other = yield from surveyed(held)
    yield from _left_out(held)
    if not len(other.kept):
        raise InputError(f"the texts to validate on: {nothing_in(plan.validation)}")
    yield from _learned_too(survey, other)
    return [
        Surveyed(corpus, survey, lengths),
        Surveyed(held, other, np.zeros_like(other.characters)),
    ]


def _learned_too(learned: Survey, held: Survey) -> Iterator[Warned]:
    """Tell texts to validate on that are among those to learn."""
    known = {learned.digest(n) for n in learned.kept.tolist()}
    count = sum(held.digest(n) in known for n in held.kept.tolist())
    yield from map(partial(Warned, 0), learned_too(count, len(held.kept), "texts"))


def learned_too(count: int, of: int, what: str) -> tuple[str, ...]:
    """What to say if some of the ``texts``, ``pairs`` … to validate on are learned as well."""
    if not count:
        return ()
    return (
        f"{count:,} of {of:,} {what} to validate on are learned as well: the validation loss is "
        "lower than on new ones.",
    )


def _corpus(
    name: str, plan: Plan, content: Mapping[str, Content], tokens: Path | None, stack: ExitStack
) -> Corpus:
    if name in content:
        return Corpus(texts=[text for text in content[name] if isinstance(text, str)])
    paths: tuple[str, ...] = getattr(plan, name)
    if not paths:
        return Corpus(texts=python_reference())
    if STANDARD_INPUT not in paths:
        return Corpus.at(paths, field=plan.field)
    rest = [path for path in paths if path != STANDARD_INPUT]
    if len(rest) < len(paths) - 1:
        raise InputError("standard input can be read only once.")
    copy = stack.enter_context(copied(tokens))
    given = SourceFile.at(copy, lines=plan.field is not None)
    others = Corpus.at(rest) if rest else Corpus()
    return Corpus([given, *others.files], field=plan.field, left_out=others.left_out)


def _left_out(corpus: Corpus) -> Iterator[Warned]:
    if corpus.what_was_left_out is not None:
        yield Warned(0, corpus.what_was_left_out)


def changed_sources(data: TokenData, plan: Plan) -> Iterator[Warned]:
    """Tell files that have changed since the run began."""
    for path in data.changed_sources(plan.field):
        yield Warned(
            0,
            f"{path} has changed since the run began. The run goes on with the text as it was.",
            hint="to train on the new text, begin a new run: --from (start_from=) with this model.",
        )


def check_learned(data: TokenData) -> None:
    """Refuse texts without a single token to predict: the first of each is only read."""
    learned = data.facts.learned
    if learned.tokens <= learned.documents:
        raise InputError(
            f"there is nothing to learn from: each text is a single token, and the next one is to "
            f"be predicted ({learned.tokens} in all).",
            hint="give more text, or --tokenizer characters (tokenizer=).",
        )


def validation_told(data: TokenData, *, given: bool) -> Iterator[Warned]:
    """Tell what is odd about the texts to validate on.

    Raises:
        InputError: nothing can be validated although texts for it are given; or they are larger
            than what is learned.
    """
    held = data.facts.held
    predicted = held.tokens - held.documents
    check_sizes(data.facts.learned.tokens, held.tokens, "tokens")
    if predicted < 1 and given:
        raise InputError("the texts to validate on are too short: they have no token to predict.")
    if predicted < 1:
        yield Warned(
            0, "the text is too small to hold a part of it out: the run goes on without validation."
        )
        return
    if predicted < FEW:
        count = "a single token" if predicted == 1 else f"{predicted} tokens only"
        yield Warned(0, f"the validation loss is that of {count}: it will say little.")
    if held.unknown:
        yield Warned(
            0,
            f"{held.unknown:,} of {held.tokens:,} tokens to validate on are unknown to the "
            "vocabulary: they do not occur in the texts that it was made of.",
        )


def check_sizes(training: int, validation: int, what: str) -> None:
    """Refuse a validation set that is larger than the data."""
    if validation > training:
        raise InputError(
            f"the validation set is larger than the data: {validation} {what} against {training}.",
            hint="were the two swapped?",
        )
