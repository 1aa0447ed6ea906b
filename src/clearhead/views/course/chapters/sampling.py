"""Chapter 10: predict and sample."""

from clearhead.views.course.chapter import Chapter, Exercise, Figure

CHAPTER = Chapter(
    id="sampling",
    title="Predict and sample",
    question="*Students opened their …* what?",
    text=(
        "The last vector of the text is compared with the vector of every word piece (*token*) of "
        "the vocabulary, by a dot product. The result is one number for each token, its **logit**. "
        "Softmax makes probabilities of them. These are the real numbers of SmolLM2, a model with "
        "135 million parameters and a vocabulary of 49,152 tokens.",
        "Then a token is drawn, as with a die that has 49,152 unequal sides. **Temperature**: all "
        "logits are divided by it first. Below 1 the likely tokens get likelier; above 1 all "
        "become more equal. **Top-k** keeps the k likeliest tokens only. **Top-p** keeps the "
        "likeliest tokens that together reach the probability p.",
        "The drawn token is put behind the text, and the whole thing starts again. This is how "
        "a language model writes.",
    ),
    figure=Figure(
        kind="sampling",
        title="SmolLM2 says what comes next",
        numbers="next_token",
        waits=True,
        same=(("shares", "share"),),
    ),
    after=("Change a logit, move the sliders, draw again.",),
    code="""import torch
import clearhead as ch

loaded = ch.load("smollm2")
ids = torch.tensor([loaded.tokenizer.encode("Students opened their")])
with torch.no_grad():
    logits = loaded.model(ids)[0, -1].double()
shares = logits.softmax(dim=0).topk(10).values
[round(one, 2) for one in shares[:3].tolist()]  # → [0.14, 0.13, 0.05]
loaded.tokenizer.decode([int(logits.argmax())])  # → eyes""",
    exercise=Exercise(
        question="Only two tokens are left, with logits 3 and 1. The temperature is 2. What is the "
        "probability of the first? (Two decimals.)",
        answer=(0.7310585786300049,),
        python="float(torch.softmax(torch.tensor([3.0, 1.0]).double() / 2, dim=0)[0])",
        explanation="The logits become 1.5 and 0.5. e^1.5/(e^1.5 + e^0.5) = 4.48/(4.48 + 1.65) = "
        "0.73. At temperature 1 it would be 0.88.",
        decimals=2,
    ),
    next="For every new token the whole text would be computed again. That is too much work.",
    download=True,
)
