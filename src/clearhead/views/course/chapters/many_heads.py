"""Chapter 7: many heads."""

from clearhead.views.course.chapter import Chapter, Exercise, Figure
from clearhead.views.course.chapters.action import WORDS

CHAPTER = Chapter(
    id="heads",
    title="Many heads",
    question="What if a word has to look for several things at once?",
    text=(
        "*They left* needs to know who *they* are, and also when, and why. One set of weights "
        "cannot look everywhere. So the whole table is computed several times, each time with "
        "matrices W_q, W_k, W_v of its own. Each such table is a **head**.",
        "Some letters: **T** is the number of heads. **d** is how many numbers a word has. **m** "
        "is how many numbers a query and a key have in one head, **l** how many a value has. m and "
        "l need not be equal: only q and k are multiplied with each other.",
        "Head number t gives a result Z_t with l numbers for each word. Z₀, Z₁ … are put side by "
        "side: T·l numbers. One more matrix, **W_O** (O for *output*), turns them into d numbers "
        "again. The result is called Z_f (f for *final*).",
    ),
    figure=Figure(
        kind="many-heads",
        title="Heads side by side, and W_O",
        data={"words": list(WORDS), "x": [[1, 0, 1, 0], [0, 2, 0, 1], [1, 1, 0, 2]]},
        same=(("layer.parameter_count", "count"),),
    ),
    after=(
        "Count what is learned. Each head has W_q and W_k with d·m numbers each and W_v with d·l: "
        "d·(2m + l). There are T heads, and W_O has T·l·d. Together d·(2m + l)·T + T·l·d.",
    ),
    code="""import torch
import clearhead as ch

layer = ch.MultiHeadAttention(512, 8, key_dim=64, value_dim=64)  # d, T, m, l
layer.parameter_count  # → 1048576
512 * (2 * 64 + 64) * 8 + 8 * 64 * 512  # → 1048576
tuple(layer(torch.zeros(1, 3, 512)).shape)  # → (1, 3, 512)""",
    exercise=Exercise(
        question="d = 512 and T = 8 stay. Make the keys narrower, m = 32, and the values wider, "
        "l = 96. How many numbers are learned now?",
        answer=(1048576.0,),
        python="ch.MultiHeadAttention(512, 8, key_dim=32, value_dim=96).parameter_count",
        explanation="512·(2·32 + 96)·8 + 8·96·512 = 655,360 + 393,216 = 1,048,576: exactly as many "
        "as with 64 and 64. m counts twice, l counts twice as well (in W_v and in W_O).",
        state={"big-m": 32, "big-l": 96},
    ),
    next="So far a sentence looked at itself. To translate, one text has to look at another.",
)
