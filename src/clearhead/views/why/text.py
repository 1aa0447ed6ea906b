"""Words and numbers of a ``why``, the same in every renderer."""

from __future__ import annotations

from clearhead.explain.why.parts import Effect, Effects, HeadPart, SourcePart, Why
from clearhead.explain.why.target import PredictedToken
from clearhead.visible import visible_text

NEW_LINE, TAB = "\n", "\t"
STRONGEST = 8  # heads that are listed
CHECKED = 10  # of the strongest heads, ablated one by one


def signed(number: float, decimals: int = 2) -> str:
    """A part with its sign: +2.66, −1.00."""
    text = f"{abs(number):.{decimals}f}"
    if float(text) == 0:
        return f" {text}"
    return f"{'+' if number > 0 else '−'}{text}"


def plain(number: float, decimals: int = 2) -> str:
    """A number that has a sign only below 0: 2.66, −1.00."""
    return signed(number, decimals).lstrip("+ ")


def percent(share: float) -> str:
    """A probability: 77 %, 0.3 %, < 0.01 %. What is not certain is not called 100 %."""
    if 0.9999 < share < 1:
        return "> 99.99 %"
    if 0.995 <= share < 1:
        return f"{100 - float(f'{100 * (1 - share):.2g}'):.4g} %"
    if share >= 0.1:
        return f"{100 * share:.0f} %"
    if share >= 0.0001:
        return f"{100 * share:.2g} %"
    return "< 0.01 %"


def quoted(token: PredictedToken) -> str:
    """A token in quotation marks, without the space before it; white space alone as signs."""
    text = token.text
    visible = text.strip(" ") or text.replace(" ", "␣")
    return f"“{visible_text(visible.replace(NEW_LINE, '⏎').replace(TAB, '⇥'))}”"


def headline(why: Why) -> str:
    """The question."""
    if why.instead is None:
        return f"Why {quoted(why.token)}? Its logit is {plain(why.total)}."
    question = f"Why {quoted(why.token)} and not {quoted(why.instead)}?"
    if why.total < 0:
        said = f"The model prefers {quoted(why.instead)}: the difference of the logits is"
    else:
        said = "The difference of the logits is"
    return f"{question} {said} {plain(why.total)}."


def place(why: Why) -> str:
    """Where the tokens would stand; empty at the end of the text, where everybody expects them."""
    word = f"“{visible_text(why.mark.text)}”"
    alike = [mark for mark in why.columns if mark.text == why.mark.text]
    if len(alike) > 1:
        word += f" (number {alike.index(why.mark) + 1} of {len(alike)})"
    if why.fills:
        return f"in the place of {word}: "
    ends = why.mark.special or not why.text[why.mark.end :].strip()
    return "" if ends else f"after {word}: "


def prediction(why: Why) -> str:
    """The place and the probabilities of the tokens that are compared."""
    said = (
        place(why) + f"{quoted(why.token)} {percent(why.token.probability)} (rank {why.token.rank})"
    )
    if why.instead is None:
        return said
    other = f"{quoted(why.instead)} {percent(why.instead.probability)} (rank {why.instead.rank})"
    return f"{said}, {other}"


def summary(why: Why) -> str:
    """The answer in a sentence: the word that made it, by which head, and what ablation says."""
    effects = why.effects
    helping = [part for part in why.heads if part.value > 0 and part.sources]
    if effects is not None:
        measured = [part for part in helping if (one := effects.of(part.name)) and one.survives]
        helping = measured or helping
    written = _by_feed_forwards(why)
    if not helping:
        return f"{written}No head speaks for this token."
    best = helping[0]
    source = best.sources[0]
    said = (
        f"{written}The strongest head for it is {best.name}: it takes {signed(source.value)} from "
        f"“{source.mark.text}”, to which it attends with a weight of {source.weight or 0.0:.2f}."
    )
    effect = None if effects is None else effects.of(best.name)
    if effects is None or effect is None:
        return said
    return f"{said} {_without_it(why, effects, effect)}"


def _without_it(why: Why, effects: Effects, effect: Effect) -> str:
    """What changes without a head: the probability; the logits where that stays the same."""
    before, after = percent(effects.probability), percent(effect.probability)
    if before != after:
        return f"Without this head the token's probability goes from {before} to {after}."
    what = "its logit" if why.instead is None else "the difference of the logits"
    return (
        f"Without this head the token's probability stays at {before}; {what} goes from "
        f"{plain(effects.target)} to {plain(effects.target - effect.total)}."
    )


def _by_feed_forwards(why: Why) -> str:
    """A sentence if feed-forward layers, and not heads, wrote most of the sum."""
    heads = sum(part.value for part in why.heads)
    written = sum(value for _, value in why.feed_forwards)
    if written <= 0 or written <= heads or written < why.total / 2:
        return ""
    return (
        f"Feed-forward layers write most of it, {signed(written)}; all heads together "
        f"{signed(heads).strip()}. "
    )


def source_name(why: Why, source: SourcePart) -> str:
    """A word, with what it is besides: of the encoder's text, or an attention sink."""
    if source.text == "source":
        return f"{source.mark.text} (source)"
    if source.column == 0 and why.sink is not None:
        return f"{source.mark.text} (sink)"
    return source.mark.text


def looks_at(part: HeadPart) -> str:
    """The source that gives a head most of its part, with its attention weight."""
    if part.replaced is not None:
        return "nothing: replaced"
    if not part.sources:
        return "nothing"
    source = part.sources[0]
    weight = "" if source.weight is None else f" {source.weight:.2f}"
    return f"{source.mark.text}{weight}"


def rest(why: Why) -> list[tuple[str, float]]:
    """What did not come through heads."""
    parts = [
        ("feed-forward layers", sum(value for _, value in why.feed_forwards)),
        ("embedding", sum(value for _, value in why.embedding)),
        ("biases", sum(value for _, value in why.biases)),
    ]
    put = [part.replaced for part in why.heads if part.replaced is not None]
    if put:
        parts.insert(0, ("replaced heads", sum(put)))
    return [(name, value) for name, value in parts if name != "biases" or why.biases]


def proof_text(why: Why) -> str:
    """The check of the sum, as a sentence."""
    proof = why.proof
    added, measured = plain(proof.sum, 4), plain(proof.measured, 4)
    numbers = f"The parts add up to {added}; the model's own number is {measured}"
    if proof.exact:
        return f"{numbers}: exact, to {max(proof.error, proof.attention_error):.0e}."
    return (
        f"{numbers}: NOT proved. The sum is off by {proof.error:.1e}, the worst attention layer by "
        f"{proof.attention_error:.1e}."
    )


def ablation_text(why: Why) -> str:
    """Whether real runs without the strongest heads confirm their parts, as a sentence."""
    if why.effects is None:
        return "No head was ablated; effects=True (--ablate) runs the model without each of them."
    names = [part.name for part in why.heads[:CHECKED]]
    found = [why.effects.of(name) for name in names]
    confirmed = sum(one is not None and one.survives for one in found)
    correlation = why.effects.rank_correlation(names)
    ranks = "" if correlation != correlation else f" (rank correlation {correlation:.2f})"
    what = "the logit" if why.instead is None else "the difference"
    others = "; what the others do, later layers change" if confirmed < len(names) else ""
    change = (
        "changes the answer as its part says"
        if confirmed == 1
        else ("change the answer as their parts say")
    )
    return (
        f"Effect: {what} with a head, less that of a real run without it. Of the {len(names)} "
        f"strongest heads, {confirmed or 'none'} {change}{ranks}{others}."
    )


def ablated(why: Why, name: str) -> tuple[str, str]:
    """The effect of ablating a head, and the token's probability then; empty if not measured."""
    effect = None if why.effects is None else why.effects.of(name)
    return ("", "") if effect is None else (signed(effect.total), percent(effect.probability))


def becomes(why: Why) -> str:
    """The heading over the token's probabilities without each head: 77 % becomes."""
    return "" if why.effects is None else f"{percent(why.effects.probability)} becomes"


def mark_of(why: Why, name: str) -> str:
    """✓ if ablation confirms a head's part, ✗ if not; empty if it was not measured."""
    effect = None if why.effects is None else why.effects.of(name)
    return "" if effect is None else "✓" if effect.survives else "✗"
