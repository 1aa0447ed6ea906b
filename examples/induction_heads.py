"""How an induction head comes to be: a small model is trained, and its checkpoints are compared.

The data are sequences of letters that are said twice: ``kfqtbz kfqtbz``. Whoever has met a letter
before can look at what followed it then. A head that does so is an induction head (Olsson et al.
2022): from a letter of the second half it looks at the letter *after* the same letter of the first.
How far back that is differs from text to text, so no head can do it by counting.

    python examples/induction_heads.py            # some seconds
    python examples/induction_heads.py run        # keeps the checkpoints: for look and diff
"""

import random
import sys
import tempfile
from pathlib import Path

import torch

import clearhead as ch
from clearhead.training import Validated

LETTERS, LENGTHS, EVERY, STEPS = "abcdefghijklmnopqrst", range(5, 12), 20, 200
APPEARED = 0.35  # of its weight on one of up to 22 letters: far more than by chance


def sequence(draw: random.Random) -> str:
    """Letters that are said twice."""
    half = "".join(draw.sample(LETTERS, draw.choice(LENGTHS)))
    return half + half


def induction(folder: Path, texts: list[str]) -> dict[str, float]:
    """The mean weight of each head from a letter said again to the one after it, the first time."""
    loaded = ch.load(folder)
    assert loaded.tokenizer is not None
    found: dict[str, float] = {}
    for text in texts:
        ids, length = loaded.tokenizer.encode(text), len(text) // 2
        first = len(ids) - 2 * length  # a token that begins a text may come before it
        again = torch.arange(first + length, len(ids) - 1)  # letters of the second half
        with ch.watch(loaded.model) as seen, torch.no_grad():
            loaded.model(torch.tensor([ids]))
        for layer in range(loaded.config.layers):
            maps = seen[f"L{layer}"].weights()  # (head, query, key)
            for head, mean in enumerate(maps[:, again, again - length + 1].mean(dim=1)):
                name = f"L{layer}H{head}"
                found[name] = found.get(name, 0.0) + float(mean) / len(texts)
    return found


def main(out: Path, steps: int = STEPS, every: int = EVERY) -> dict[int, dict[str, float]]:
    """Train, and measure every checkpoint that was kept."""
    draw = random.Random(1)
    texts = [sequence(draw) for _ in range(3000)]
    losses = {}
    for event in ch.train(
        texts, out=out, tokenizer="characters", steps=steps, device="cpu",
        model={"model": 64, "layers": 2, "heads": 4, "kv_heads": 4, "key_dim": 16,
               "feed_forward": 64, "context": 170},
        settings={"validate_every": every, "keep_every": every, "batch_tokens": 850,
                  "validation_tokens": 1700, "learning_rate": 6e-3, "matrix_learning_rate": 0.04},
    ):  # fmt: skip
        if isinstance(event, Validated):
            losses[event.step] = event.loss
    tried = [sequence(draw) for _ in range(20)]
    found, appeared = {}, None
    print("step   validation loss   induction: best head")
    for folder in sorted((out / "checkpoints").iterdir()):
        step = int(folder.name.removeprefix("step-"))
        found[step] = induction(folder, tried)
        best = max(found[step], key=found[step].__getitem__)
        loss = f"{losses[step]:.3f}" if step in losses else "     "
        print(f"{step:4}   {loss:>15}   {found[step][best]:.2f} {best}")
        if appeared is None and found[step][best] >= APPEARED:
            appeared = f"{best} is an induction head from step {step} on."
    print(appeared or "no induction head appeared.")
    return found


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as place:
            main(Path(place) / "run")
