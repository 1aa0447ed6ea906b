"""Chapter 4: q, k, v = f(W(c + p))."""

from clearhead.views.course.chapter import Chapter, Exercise, Figure
from clearhead.views.course.chapters.action import CODE, DATA

CHAPTER = Chapter(
    id="matrices",
    title="Query, key and value",
    question="How can one word ask for one thing and offer another?",
    text=(
        "The verb *gets* may look for a subject. It asks for a noun, but it is a verb itself. So a "
        "word needs three vectors: a **query** q (what I look for), a **key** k (what I can be "
        "found by) and a **value** v (what I give to those who find me).",
        "All three are made from x = c + p by multiplying with a table of numbers, a *matrix* W. "
        "Each number of q is a dot product: x with one column of W. There are three matrices, W_q, "
        "W_k and W_v. They are the same for every word, and training finds their numbers.",
        "Some texts write q = f(W(c + p)). The function f is applied to each number. Usually it "
        "does nothing: f(x) = x.",
    ),
    figure=Figure(
        kind="matrices",
        title="From words to queries, keys and values",
        data=DATA,
        same=(("q", "q"), ("k", "k"), ("v", "v")),
    ),
    after=("Click a number of the result: the row and the sum that made it are shown.",),
    code=CODE
    + "\n[round(one, 2) for one in q[1].tolist()]  # of gets  # → [0.85, 4.54, 2.55, 2.84]",
    exercise=Exercise(
        question="Forget positions for a moment: *Action* has c = (1 0 1 0). The first column of "
        "W_q is 1, 0, 1, 0 from top to bottom. What is the first number of its query?",
        answer=(2.0,),
        python="float((c[0] @ W_q)[0])",
        explanation="1·1 + 0·0 + 1·1 + 0·0 = 2. With the position added it is a little different, "
        "as the figure shows.",
    ),
    next="Now everything is there for the famous table.",
)
