"""Chapter 5: the table for every word."""

from clearhead.views.course.chapter import Chapter, Exercise, Figure
from clearhead.views.course.chapters.action import CODE, DATA

CHAPTER = Chapter(
    id="table",
    title="The whole table",
    question="What happens, number by number, when a sentence looks at itself?",
    text=(
        "Every word sends its query to the key of every word, its own included. This is "
        "*self-attention*. The columns of the table are the steps, from left to right:",
        "**score** = q · k. Then **score/√d**, where d is how many numbers q and k have; here d = "
        "4 and √4 = 2. Long vectors give large scores, and softmax of large scores is nearly all "
        "or nothing; dividing keeps it gentle. Then **softmax**: the weights. Then **softmax · "
        "v**: each value times its weight. The **sum** of these is the new vector of the word.",
    ),
    figure=Figure(
        kind="step-table",
        title="Action gets results: every word, every step",
        data=DATA,
        same=(
            ("steps.scores", "scores"),
            ("steps.scaled", "scaled"),
            ("steps.weights", "weights"),
            ("steps.output", "output"),
        ),
    ),
    after=(
        "Type other words and other numbers. The matrices are those of the last chapter. Your own "
        "numbers in a terminal: `clearhead steps --numbers FILE.csv`.",
    ),
    code=CODE.replace("q, k, v = x @ W_q, x @ W_k, x @ W_v", "")
    + "steps = ch.attention_steps(x @ W_q, x @ W_k, x @ W_v)\n"
    + "[round(one, 3) for one in steps.weights[0].tolist()]  # Action's  # → [0.026, 0.428, 0.545]",
    exercise=Exercise(
        question="In a real model q and k have 64 numbers. A score is 24. What is score/√d?",
        answer=(3.0,),
        python="24 / 64**0.5",
        explanation="√64 = 8, and 24/8 = 3.",
    ),
    next="Every word looked at every word, also at later ones. A model that writes must not.",
)
