"""Chapter 3: words as vectors, and why position is needed."""

from clearhead.views.course.chapter import Chapter, Exercise, Figure
from clearhead.views.course.chapters.action import EMBEDDING, WORDS

CHAPTER = Chapter(
    id="positions",
    title="Words as vectors",
    question="Does attention know the order of the words?",
    text=(
        "Each word of the vocabulary gets a vector **c** (its *content*; people also say "
        "*embedding*). At first these numbers are random. Training (chapter 6) changes them, "
        "so that words of similar use get similar vectors. Here each word has four numbers.",
        "Now every word asks: its vector is its query, its key and its value at once. Each word "
        "gets a mix of all words. Shuffle the words in the figure. Without positions each word "
        "gets the very same numbers as before: *dog bites man* and *man bites dog* would be the "
        "same.",
        "So a second vector **p** is added that depends only on the place in the sentence. The sum "
        "is called **x** = c + p. The paper of 2017 made p out of waves: sine and cosine of the "
        "place, quick waves first, slow waves last.",
    ),
    figure=Figure(
        kind="positions",
        title="Shuffle the words, without and with positions",
        data={"words": list(WORDS), "embedding": EMBEDDING},
        same=(("mix(c)", "output"),),
    ),
    after=("Tick *add positions p* and shuffle again: now the order matters.",),
    code="""import torch
import clearhead as ch

c = torch.tensor([[1, 0, 1, 0], [0, 2, 0, 1], [1, 1, 0, 2]], dtype=torch.float64)
angle = torch.arange(3, dtype=torch.float64)[:, None] / torch.tensor([1, 100])  # quick and slow
p = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
mix = lambda x: ch.attention_steps(x, x, x).output
order = [2, 1, 0]
torch.allclose(mix(c)[order], mix(c[order]))  # → True
torch.allclose(mix(c + p)[order], mix(c[order] + p))  # → False""",
    exercise=Exercise(
        question="Positions are on, and the order is turned round: *results gets Action*. Which "
        "word keeps its vector x = c + p?",
        answer=(1.0,),
        python="[place for place, word in enumerate(order) if place == word][0]",
        explanation="*gets* stays in the middle, so its c and its p are as before. Still its "
        "result changes, because the words around it changed.",
        options=("Action", "gets", "results"),
        state={"order": "3 2 1", "p": 1},
    ),
    next="One vector that is query, key and value at once is too little: to ask is not to answer.",
)
