"""Chapter 2: a batch at once."""

from clearhead.explain.worked_examples import BATCH_KEYS, BATCH_QUERIES
from clearhead.views.course.chapter import Chapter, Exercise, Figure

CHAPTER = Chapter(
    id="batch",
    title="A batch at once",
    question="What changes if three people ask at the same time, each with cards of their own?",
    text=(
        "Nothing changes for each of them. But a computer is quick only if it gets much work at "
        "once. So the three tasks are put into one block of numbers, a **batch**.",
        "The *shape* of a block says how many numbers it has in each direction. The keys have the "
        "shape (B, N, D): B rows of the batch, N keys in each, D numbers in each key. The queries "
        "have (B, D): one query for each row. The result has (B, D) as well: one mix for each row.",
    ),
    figure=Figure(
        kind="batch",
        title="Three rows, computed at once",
        data={
            "queries": [list(query) for query in BATCH_QUERIES],
            "keys": [[list(key) for key in keys] for keys in BATCH_KEYS],
        },
        same=(("mixes", "output"),),
    ),
    after=("Change a number in one row: only the mix of this row changes.",),
    code="""import torch
import clearhead as ch

keys = [[[1, 0, 1], [1, 0, -1], [-1, 1, 0], [-1, 0, 1]],
        [[-2, -1, 0], [1, 0, -1], [-1, 1, 0], [-1, -3, 1]],
        [[2, 3, 9], [1, 4, 3], [-1, 0, 5], [-1, -2, 0]]]  # B = 3, N = 4, D = 3
queries = torch.tensor([[2, 0, -1], [-2, 1, -1], [1, 1, 1]], dtype=torch.float64)
mixes = ch.selfish_attention(torch.tensor(keys, dtype=torch.float64), queries)
tuple(mixes.shape)  # → (3, 3)
[round(one, 2) for one in mixes[1].tolist()]  # of row 2  # → [-1.48, -0.01, -0.01]""",
    exercise=Exercise(
        question="A batch has 32 rows. Each row has one query and 50 keys of 64 numbers. How many "
        "scores are computed?",
        answer=(1600.0,),
        python="32 * 50",
        explanation="One score for each pair of query and key: 32 · 1 · 50 = 1600. The 64 numbers "
        "are summed up inside each score.",
    ),
    next="So far the vectors came from nowhere. Next, they are words.",
)
