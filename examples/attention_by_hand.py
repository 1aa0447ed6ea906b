"""Attention by hand: the public function against the formula, written out once more."""

import torch

import clearhead as ch

torch.manual_seed(0)
words = ["Action", "gets", "results"]
query, key, value = torch.randn(3, len(words), 4)

scores = query @ key.T / 4**0.5
weights = torch.softmax(scores, dim=-1)
by_hand = weights @ value

output = ch.attention(query, key, value)
print(f"largest difference to the formula: {(output - by_hand).abs().max():.1e}")
for word, row in zip(words, weights.tolist(), strict=True):
    shares = "  ".join(f"{other} {share:.2f}" for other, share in zip(words, row, strict=True))
    print(f"{word:>8} looks at  {shares}")
