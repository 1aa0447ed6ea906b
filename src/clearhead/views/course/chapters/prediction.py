"""Chapter 15: what attention tells and what it does not."""

from clearhead.views.course.chapter import Chapter, Exercise, Figure

CHAPTER = Chapter(
    id="why",
    title="What attention tells, and what it does not",
    question="A head looks at *France*. Is that why the model says *Paris*?",
    text=(
        "Three different questions are often mixed up. **Weight**: where does a head look? "
        "**Part**: how much does it add to the answer? **Ablation**: what changes if the head is "
        "taken out?",
        "The part can be computed exactly. All layers *add* to the state (chapter 9), and the "
        "logit is a dot product with the final state. So the logit is a sum over all heads and "
        "layers. Here we take the logit of *Paris* minus the logit of *London*: 4.13.",
        "The ablation is measured: the model runs again without the head. The two need not agree. "
        "A head may add nothing itself and still be needed by later heads. Or others may jump in "
        "when it is missing.",
    ),
    figure=Figure(
        kind="prediction",
        title="The capital of France is …: three answers for each head",
        numbers="prediction",
        same=(("why.total", "left"),),
    ),
    after=(
        "Sort by *ablation*: heads of the first layers appear. They add almost nothing to the sum, "
        "and yet much changes without them. Sort by *weight*: some of the strongest lookers hardly "
        "matter. So a weight alone is no explanation.",
    ),
    code="""import clearhead as ch

why = ch.why("smollm2", "The capital of France is", " Paris", " London")
round(why.total, 3)  # logit of Paris − logit of London  # → 4.126
why.head("L23H4")  # → L23H4 +2.66, looking 0.90 at 'France'
round(why.effects.of("L23H4").total, 2)  # measured: effect of removing it  # → 3.85""",
    exercise=Exercise(
        question="The difference is 4.126, and L23H4 adds 2.657 of it. If the sum were the whole "
        "story, what would be left without L23H4? (Two decimals.)",
        answer=(1.46943699,),
        python="why.total - why.head('L23H4').value",
        explanation="4.126 − 2.657 = 1.47. But in the real run without L23H4 only 0.28 is left: "
        "later heads needed what it wrote. So both numbers belong side by side.",
        decimals=2,
        state={"keep-L23H4": 0},
    ),
    next="You know all the parts. Let us follow one token through all of them.",
    download=True,
)
