"""Chapter 12: training in parallel, generation in sequence; against recurrence."""

from clearhead.views.course.chapter import Chapter, Exercise, Figure

CHAPTER = Chapter(
    id="recurrence",
    title="Parallel or in sequence",
    question="What did people use before attention, and what was gained and lost?",
    text=(
        "A **recurrent network** reads one word after the other and keeps one vector of memory, "
        "the *state* h. Each new state is made from the input and the state before: h = tanh(w·x + "
        "u·h), where tanh squeezes every number between −1 and 1. Word 1,000 has to wait for 999 "
        "steps. Attention computes all rows at once: in *training* the whole text is known, and "
        "the mask does the rest. Only in *writing* both go step by step.",
        "There is a second loss. What the first word left in the state is squeezed again at each "
        "step. The last line of the figure says how much the first input still moves the state. "
        "With attention, word 1,000 looks at word 1 directly.",
        "But recurrence has something to offer. Its memory never grows, and the next word costs "
        "the same after 16 words as after 4,096. In our measurement below it writes the next token "
        "two to six times quicker than attention, and after 4,096 words it keeps 256 numbers "
        "instead of two million.",
    ),
    figure=Figure(
        kind="recurrence",
        title="A recurrent network step by step, and what was measured",
        data={"x": [1, 0, 0, 0, 0, 0], "w": 0.9, "u": 0.8},
        numbers="recurrence",
        same=(("states", "h"),),
    ),
    after=(
        "Attention trains 1.5 to 7 times quicker here, and it remembers: after the same training, "
        "recurrence could not name the first of 32 symbols, attention always could. Recurrence "
        "writes quicker and needs less memory. Try u = 1.2 in the figure, then u = 0.3.",
    ),
    code="""import torch

x = torch.tensor([1, 0, 0, 0, 0, 0], dtype=torch.float64, requires_grad=True)
states, h = [], torch.tensor(0.0, dtype=torch.float64)
for one in x:
    h = torch.tanh(0.9 * one + 0.8 * h)
    states.append(float(h.detach()))
h.backward()
round(float(x.grad[0]), 4)  # what is left of the first input  # → 0.0735""",
    exercise=Exercise(
        question="A text has 1,000 words, and one layer is trained on it. How many steps are "
        "taken one after the other: with recurrence, and with attention?",
        answer=(1000.0, 1.0),
        python="(1000, 1)",
        explanation="Recurrence needs 1,000 steps in a row. Attention computes all 1,000 rows in "
        "one step, with more multiplications in total.",
        labels=("recurrence", "attention"),
    ),
    next="A trained model has hundreds of heads. What do they look at?",
)
