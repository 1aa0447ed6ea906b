"""Words and numbers of a ``why``, the same in every renderer."""

from __future__ import annotations

from clearhead.explain.why.parts import HeadPart, SourcePart, Why
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


def percent(share: float) -> str:
    """A probability: 77 %, 0.3 %, < 0.01 %."""
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
        return f"Why {quoted(why.token)}? Its logit is {why.total:.2f}."
    question = f"Why {quoted(why.token)} and not {quoted(why.instead)}?"
    return f"{question} The difference of the logits is {why.total:.2f}."


def prediction(why: Why) -> str:
    """The probabilities of the tokens that are compared."""
    said = f"{quoted(why.token)} {percent(why.token.probability)} (rank {why.token.rank})"
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
    if not helping:
        return "No head speaks for this token."
    best = helping[0]
    source = best.sources[0]
    said = (
        f"The strongest head for it is {best.name}: it takes {signed(source.value)} from "
        f"“{source.mark.text}”, to which it attends with a weight of {source.weight or 0.0:.2f}."
    )
    effect = None if effects is None else effects.of(best.name)
    if effects is None or effect is None:
        return said
    before, after = percent(effects.probability), percent(effect.probability)
    return f"{said} Without this head the token's probability goes from {before} to {after}."


def source_name(why: Why, source: SourcePart) -> str:
    """A word, with what it is besides: of the encoder's text, or an attention sink."""
    if source.text == "source":
        return f"{source.mark.text} (source)"
    if source.column == 0 and len(why.columns) > 2 and not why.source_columns:
        return f"{source.mark.text} (sink)"
    return source.mark.text


def looks_at(part: HeadPart) -> str:
    """The source that gives a head most of its part, with its attention weight."""
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
    return [(name, value) for name, value in parts if name != "biases" or why.biases]


def proof_text(why: Why) -> str:
    """The check of the sum, as a sentence."""
    proof = why.proof
    numbers = f"The parts add up to {proof.sum:.4f}; the model's own number is {proof.measured:.4f}"
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
    return (
        f"Ablated one by one, {confirmed} of the {len(names)} strongest heads change the answer as "
        f"their parts say{ranks}; what the others do, later layers change."
    )


def without(why: Why, name: str) -> tuple[str, str]:
    """The target, and the token's probability, without a head; empty if not measured."""
    effect = None if why.effects is None else why.effects.of(name)
    if effect is None or why.effects is None:
        return "", ""
    return f"{why.effects.target - effect.total:.2f}", percent(effect.probability)


def mark_of(why: Why, name: str) -> str:
    """✓ if ablation confirms a head's part, ✗ if not; empty if it was not measured."""
    effect = None if why.effects is None else why.effects.of(name)
    return "" if effect is None else "✓" if effect.survives else "✗"
