"""The closing chapter: a real model's own way of one token."""

from clearhead.views.course.chapter import Chapter, Exercise, Figure

CHAPTER = Chapter(
    id="way",
    title="The way of one token",
    question="What happens inside a real model between *is* and *Paris*?",
    text=(
        "This is SmolLM2 on *The capital of France is*. You follow the last token, *is*, from its "
        "embedding through 30 layers to the answer. All numbers are those of the real run. Each "
        "small cell of a strip is one number: blue is positive, orange negative, strong is large.",
        "The row of buttons shows which token the model would name if it had to answer after each "
        "layer (⏎ is a line break). Click one. For a long time it would only go on with small "
        "words. *Paris* is the likeliest only after the last layer. But it was prepared before: in "
        "layer 23, head 4 looks at *France*. Have a look at other heads, too.",
        "SmolLM2 differs from the Transformer of 2017 in details: it has no encoder, three heads "
        "share each key and value, positions turn q and k instead of being added, and the "
        "feed-forward layer has a gate. You have met everything else.",
    ),
    figure=Figure(
        kind="token-way",
        title="Layer by layer, head by head",
        numbers="token_way",
        waits=True,
        same=(("weights", "weights"),),
    ),
    after=(
        'Look at your own sentence in the same way: `clearhead look "your sentence" --open`, and '
        'ask why: `clearhead why "The capital of Italy is"`.',
    ),
    code="""import torch
import clearhead as ch

loaded = ch.load("smollm2")
ids = torch.tensor([loaded.tokenizer.encode("The capital of France is")])
with ch.watch(loaded) as seen, torch.no_grad():
    logits = loaded.model(ids)[0, -1]
weights = seen["L23H4"].row(4)  # where "is" looks
round(float(weights[3]), 2)  # at France  # → 0.9
loaded.tokenizer.decode([int(logits.argmax())])  # → Paris""",
    exercise=Exercise(
        question="SmolLM2 has 9 heads, and each gives a Z of 64 numbers. How many numbers stand "
        "side by side before W_O?",
        answer=(576.0,),
        python="9 * 64",
        explanation="9 · 64 = 576, as many as the state has. So W_O has 576 × 576 numbers.",
    ),
    next="That was the course. Everything in it is also a command and a function of clearhead.",
    download=True,
)
