"""Chapter 1: one query and four keys."""

from clearhead.explain.worked_examples import BATCH_KEYS, BATCH_QUERIES
from clearhead.views.course.chapter import Chapter, Exercise, Figure

CHAPTER = Chapter(
    id="one-query",
    title="One query, four keys",
    question="How can a computer look something up when nothing matches exactly?",
    text=(
        "Imagine four cards. On each card stands a short list of numbers. Such a list is called a "
        "*vector*; here it has three numbers. The lists on the cards are called **keys**. You come "
        "with a list of your own, the **query**, and ask: which card fits my query?",
        "**Step 1: the score.** Multiply the query and a key number by number, and add the "
        "results. This is the *dot product*, written query · key. It is large if both lists are "
        "large in the same places.",
        "**Step 2: softmax.** Scores can be any number. We want shares: none below 0, all together "
        "1. So each score becomes e^score, where e ≈ 2.718, and each result is divided by the sum "
        "of all. A slightly larger score gets a much larger share. The shares are called "
        "**attention weights**.",
        "**Step 3: the mix.** Take each key times its weight, and add. The result is one vector: a "
        "mix of the cards, mostly of those that fit. That is all attention does.",
    ),
    figure=Figure(
        kind="one-query",
        title="Change any number in a box: everything is computed again",
        data={"query": list(BATCH_QUERIES[0]), "keys": [list(key) for key in BATCH_KEYS[0]]},
        same=(("steps.scores", "scores"), ("steps.weights", "weights"), ("steps.output", "output")),
    ),
    after=(
        "Key 2 fits best: it is large where the query is large, and negative where the query is "
        "negative. It gets 0.874 of the attention. Try to give key 1 more than key 2.",
    ),
    code="""import torch
import clearhead as ch

keys = torch.tensor([[1, 0, 1], [1, 0, -1], [-1, 1, 0], [-1, 0, 1]], dtype=torch.float64)
query = torch.tensor([[2, 0, -1]], dtype=torch.float64)
steps = ch.attention_steps(query, keys, keys, scale=1.0)
steps.scores.tolist()  # → [[1.0, 3.0, -2.0, -3.0]]
[round(one, 3) for one in steps.weights[0].tolist()]  # → [0.118, 0.874, 0.006, 0.002]""",
    exercise=Exercise(
        question="The query is (2 0 −1). Change key 4 to the same numbers, (2 0 −1). What will its "
        "score be?",
        answer=(5.0,),
        python="float(query[0] @ query[0])",
        explanation="2·2 + 0·0 + (−1)·(−1) = 5. It is the largest score now, so key 4 takes most "
        "of the attention.",
        state={"keys-3-0": 2, "keys-3-1": 0, "keys-3-2": -1},
    ),
    next="One query is a single question. A computer asks thousands at once.",
)
