from __future__ import annotations

from clearhead.explain.roles.corpus.rarity import WordCounts
from clearhead.explain.roles.corpus.recognisers import plain_sentence


def test_words_are_counted_whatever_their_case() -> None:
    texts = ["The kids saw the lions.", "Lions slept."]
    counts = WordCounts.of_sentences(map(plain_sentence, texts))
    found = {word: counts[word] for word in ("the", "Lions", "kids", ".", "zebra")}
    assert found == {"the": 2, "Lions": 2, "kids": 1, ".": 2, "zebra": 0}
