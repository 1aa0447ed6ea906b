"""Chapter 11: the key-value cache."""

from clearhead.views.course.chapter import Chapter, Exercise, Figure

CHAPTER = Chapter(
    id="cache",
    title="The key-value cache",
    question="Why does a model not get slower and slower as its text gets longer?",
    text=(
        "A model writes token by token. For the new token it needs a query. It also needs the keys "
        "and values of all tokens before. But these do not change: thanks to the mask, an early "
        "token never sees a later one. So they are computed once and kept. This store is the "
        "**key-value cache** (KV cache).",
        "With the cache, each step sends one token through W_q, W_k and W_v. Without it, each step "
        "sends all of them. The price is memory: two vectors for each token in each layer. And the "
        "stored numbers must be read at each step.",
    ),
    figure=Figure(
        kind="cache",
        title="What is computed and what is read, step by step",
        data={
            "words": [
                "Students",
                "opened",
                "their",
                "books",
                "and",
                "read",
                "the",
                "first",
                "page",
                "about",
                "attention",
                "in",
                "silence",
            ]
        },
    ),
    after=(
        "Counted are multiplications of one attention layer: 4·d·d for each token through W_q, "
        "W_k, W_v and W_O, and 2·d for each pair of query and key (score and mix). The slider "
        "*step* walks through the writing.",
    ),
    code="""import torch
import clearhead as ch

layer = ch.MultiHeadAttention(8, 2, causal=True)
x = torch.randn(1, 5, 8)  # five tokens
cache = ch.KVCache()
steps = [layer(x[:, t : t + 1], cache=cache) for t in range(5)]  # one at a time
torch.allclose(torch.cat(steps, dim=1), layer(x), atol=1e-6)  # → True
tuple(cache.keys.shape)  # batch, heads, tokens, width  # → (1, 2, 5, 4)""",
    exercise=Exercise(
        question="The prompt has 3 words, and 5 words are written. Without the cache: how many "
        "times is a word sent through W_q, W_k and W_v, all steps together?",
        answer=(25.0,),
        python="sum(3 + step for step in range(5))",
        explanation="3 + 4 + 5 + 6 + 7 = 25. With the cache it is 3 + 1 + 1 + 1 + 1 = 7.",
        state={"prompt": 3, "written": 5, "step": 5},
    ),
    next="Writing is one step after the other. Is training as slow?",
)
