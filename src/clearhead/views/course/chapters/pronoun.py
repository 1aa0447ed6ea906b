"""Chapter 14: who is they?"""

from clearhead.views.course.chapter import Chapter, Exercise, Figure

CHAPTER = Chapter(
    id="they",
    title="Who is they?",
    question="*The kids were scared of the lions, so they left right away.* Who left?",
    text=(
        "You know at once: the kids. There is no rule of grammar that says so; *they* could be the "
        "lions. Does the model know? We look at one head of SmolLM2: head 5 of layer 16, written "
        "**L16H5**. The figure holds the query of *they* and the keys of the words before it, as "
        "the model computed them, 64 numbers each. So d = 64 and √d = 8: the page computes q·k/8 "
        "and softmax, as in chapter 5.",
        "Tick *swap*: now the lions are scared of the kids. All other words stay.",
    ),
    figure=Figure(
        kind="pronoun",
        title="From they to every word before it, in L16H5",
        numbers="pronoun",
        waits=True,
        same=(("weights", "weights"),),
    ),
    after=(
        "It is not magic: on 400 pronouns of a public test set this head is right more often than "
        "simple rules, but far from always. Add a number to a score and see how softmax answers.",
    ),
    code="""import torch
import clearhead as ch

loaded = ch.load("smollm2")
text = "The kids were scared of the lions, so they left right away."
with ch.watch(loaded) as seen, torch.no_grad():
    loaded.model(torch.tensor([loaded.tokenizer.encode(text)]))
weights = seen["L16H5"].row(9)[:10]  # "they" is token 9
round(float(weights[1]), 2), round(float(weights[6]), 2)  # kids, lions  # → (0.6, 0.09)""",
    exercise=Exercise(
        question="Swap kids and lions: *The lions were scared of the kids, so they left right "
        "away.* Where will *they* look more?",
        answer=(1.0,),
        python="int(ch.look(loaded, text.replace('kids', '#').replace('lions', 'kids')"
        ".replace('#', 'lions')).word('they', 'L16H5').sources[0].mark.text == 'lions')",
        explanation="At the lions: 0.52, and 0.24 for the kids. The head follows the meaning of "
        "the sentence, not the place of the word.",
        options=("at the kids", "at the lions"),
        state={"swap": 1},
    ),
    next="A weight says where a head looks. Does that explain what the model says?",
    download=True,
)
