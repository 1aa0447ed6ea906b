"""Multi30k, German to English: one command trains, beam search translates, sacrebleu scores.

    python benchmarks/translation.py                  # 52 minutes of training, then the score
    python benchmarks/translation.py --minutes 4      # a try
    python benchmarks/translation.py --only-score     # of the model that is there

Text is used as it is: cased, not tokenised. Beside the score of that stands the one of lower-cased
text, which is what published figures for this test set are.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from measure import DATA, corpus_at, machine, publish, table

import clearhead as ch
from clearhead.cli.train import command

MULTI30K = DATA / "multi30k"
RECIPE = [
    "--size", "small", "--vocabulary", "6000", "--set", "feed_forward=512",
    "--set", "dropout=0.2", "--set", "batch_tokens=4096",
    "--set", "learning_rate=0.003", "--set", "matrix_learning_rate=0.01",
    "--set", "warmup=200", "--set", "cooldown=0.8", "--set", "floor=0.02",
    "--set", "validate_every=500", "--set", "average=5",
]  # fmt: skip


def train(data: Path, out: Path, minutes: float) -> None:
    arguments = ["--pairs", str(data / "train.de"), str(data / "train.en")]
    arguments += ["--validation", str(data / "val.de"), "--validation", str(data / "val.en")]
    arguments += ["--minutes", str(minutes), "--out", str(out), *RECIPE]
    print("clearhead train", *arguments)
    command.main(arguments, standalone_mode=False)


def score(data: Path, out: Path, sentences: int | None) -> list[str]:
    """BLEU of the test set: lower-cased, and as it is."""
    import sacrebleu

    loaded = ch.load(out)
    sources, references = (
        (data / f"test_2016_flickr.{language}").read_text(encoding="utf-8").splitlines()[:sentences]
        for language in ("de", "en")
    )
    began = time.perf_counter()
    found = [
        ch.beam_search(loaded, source, beams=5, max_tokens=80)[0].text.strip() for source in sources
    ]
    seconds = time.perf_counter() - began
    for source, ours, reference in list(zip(sources, found, references, strict=True))[:3]:
        print(f"{source}\n    {ours}\n    {reference}")
    lower = sacrebleu.corpus_bleu(found, [references], lowercase=True)
    cased = sacrebleu.corpus_bleu(found, [references])
    count = sum(parameter.numel() for parameter in loaded.model.parameters())
    return [
        f"{count:,}", f"{lower.score:.2f}", f"{cased.score:.2f}",
        f"{len(sources) / seconds:.1f} sentences/s",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=MULTI30K, help="train.de, train.en, …")
    parser.add_argument("--out", type=Path, default=Path("multi30k"))
    parser.add_argument("--minutes", type=float, default=52.0)
    parser.add_argument("--sentences", type=int, help="score only the first so many")
    parser.add_argument("--only-score", action="store_true")
    parser.add_argument("--publish", action="store_true", help="write into docs/benchmarks.md")
    arguments = parser.parse_args()
    corpus_at(arguments.data, "Multi30k")
    began = time.perf_counter()
    if not arguments.only_score:
        train(arguments.data, arguments.out, arguments.minutes)
    minutes = (time.perf_counter() - began) / 60
    row = [f"{minutes:.1f}", *score(arguments.data, arguments.out, arguments.sentences)]
    header = ["minutes of training", "parameters", "BLEU, lower-cased", "BLEU, cased", "beam 5"]
    about = f"`python benchmarks/translation.py` on {machine()}. Multi30k de→en, test_2016_flickr."
    text = f"{about}\n\n{table(header, [row])}"
    print(text)
    if arguments.publish:
        publish("translation", text)


if __name__ == "__main__":
    main()
