"""Chapter 6: no looking ahead."""

from clearhead.views.course.chapter import Chapter, Exercise, Figure

CHAPTER = Chapter(
    id="mask",
    title="No looking ahead",
    question="How can a model learn to guess the next word without seeing it?",
    text=(
        "A model is **trained** by guessing. It reads a text and guesses each next word. Its "
        "numbers start at random. After each guess all of them are moved a tiny step, so that the "
        "right word would have been a little likelier. After very many texts the guesses are good.",
        "A model that writes reads *The cat sat* and has to guess *down*. If *sat* could look at "
        "*down*, the guess would be no guess. So a word may look at itself and at earlier words "
        "only.",
        "The trick is one addition. Before softmax, −∞ (minus infinity) is added to each score "
        "that is not allowed. Since e to the power of −∞ is 0, softmax gives it the weight 0. The "
        "table of zeros and −∞ is called the **mask**.",
        "The mask does more than hide. Row 2 is the same, whether words 3 and 4 are there or not. "
        "So all rows can be computed at once, *in parallel*, and still each one is as if the text "
        "ended there. Move the slider and compare.",
    ),
    figure=Figure(
        kind="mask",
        title="Step by step, or all at once: the same numbers",
        data={"words": ["The", "cat", "sat", "down"], "x": [[1, 0], [0, 1], [1, 1], [2, -1]]},
        same=(("steps.weights", "weights"), ("steps.output", "output")),
    ),
    after=("Take the tick away and move the slider: then early words see the future.",),
    code="""import torch
import clearhead as ch

x = torch.tensor([[1, 0], [0, 1], [1, 1], [2, -1]], dtype=torch.float64)
steps = ch.attention_steps(x, x, x, causal=True)
steps.masked[1].tolist()[2:]  # → [-inf, -inf]
first_two = ch.attention_steps(x[:2], x[:2], x[:2], causal=True)
torch.equal(first_two.output, steps.output[:2])  # → True""",
    exercise=Exercise(
        question="A text has 5 words, so there are 25 scores. How many of them are not −∞?",
        answer=(15.0,),
        python="int(torch.ones(5, 5).tril().sum())",
        explanation="Word 1 sees 1 word, word 2 sees 2, and so on: 1 + 2 + 3 + 4 + 5 = 15.",
    ),
    next="One look at the sentence is one opinion. Models take many at once.",
)
