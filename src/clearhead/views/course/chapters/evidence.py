"""Chapter 13: heads specialise."""

from clearhead.views.course.chapter import Chapter, Exercise, Figure

CHAPTER = Chapter(
    id="roles",
    title="Heads specialise",
    question="Does each head of a real model do a job of its own?",
    text=(
        "SmolLM2 has 30 layers of 9 heads: 270 heads. We let it read 520 sentences and asked for "
        "each head and each word: which word gets the largest weight? Some heads look at verbs, "
        "some at names, one at dates, many at particular small words. Many heads mostly look at "
        "the first token, where it does no harm: they *rest*.",
        "A claim like *this head looks at verbs* needs evidence. In how many **cases** was there a "
        "verb to look at? In how many did the head look at it (**hits**)? How often would a simple "
        "rule be right by luck, such as *always two words back* (the **baseline**)? And how sure "
        "can we be? The **95 % interval** is the range in which the true share probably lies. If "
        "even its lower end is above the baseline, it is hard to call it luck.",
    ),
    figure=Figure(
        kind="evidence",
        title="What heads of SmolLM2 look at, with evidence",
        numbers="evidence",
        same=(("low", "low"), ("high", "high"), ("chance", "chance")),
    ),
    after=(
        "Bold is the word that looks; the numbers are the weights. The heads were found in one "
        "half of the sentences and counted in the other. All of it, for any model: `clearhead "
        "heads`.",
    ),
    code="""from clearhead.explain.roles.intervals import binomial_tail, wilson_interval

hits, cases, baseline = 571, 1496, 0.1544  # head L13H4 and verbs
low, high = wilson_interval(hits, cases)
chance = binomial_tail(hits, cases, baseline)
round(low, 3), round(high, 3)  # → (0.357, 0.407)
chance < 1e-90  # → True""",
    exercise=Exercise(
        question="A head hits 8 of 10 cases. The baseline is 0.5. What do you say?",
        answer=(1.0,),
        python="int(wilson_interval(8, 10)[0] < 0.5)",
        explanation="The interval goes from 0.49 to 0.94: its lower end is below 0.5. Ten cases "
        "are too few. With 80 of 100 it would be clear.",
        options=("The head has learned it.", "That could still be luck."),
        state={"hits": 8, "cases": 10, "baseline": 0.5},
    ),
    next="Now one head, one sentence, one small word.",
)
