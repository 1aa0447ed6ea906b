"""The KV cache at work: one token after another, each a single row of attention."""

import torch

import clearhead as ch

torch.manual_seed(0)
config = ch.ModelConfig(
    kind="decoder",
    vocab=101,
    context=64,
    model=48,
    layers=3,
    heads=6,
    kv_heads=2,
    feed_forward=96,
    gated=True,
)
model = ch.Decoder(config).eval()

with torch.no_grad():
    cache = model.new_cache(capacity=32)
    ids = torch.tensor([[1, 2, 3]])  # an untrained model: watch the cache, not the text
    logits = model(ids, cache=cache, last_only=True)
    chosen = []
    for _ in range(10):
        chosen.append(int(logits.argmax()))
        logits = model(torch.tensor([[chosen[-1]]]), cache=cache)
    whole = model(torch.tensor([[1, 2, 3, *chosen]]))

print(f"chose {chosen}; the cache holds {cache.length} tokens")
print(
    f"difference to one forward over all of them: {(whole[0, -1] - logits[0, -1]).abs().max():.1e}"
)
