"""The numbers of *Action gets results*, which three chapters share."""

WORDS = ("Action", "gets", "results")
EMBEDDING = [[1, 0, 1, 0], [0, 2, 0, 1], [1, 1, 0, 2]]
TO_QUERY = [[1, 0, 0, 1], [0, 1, 1, 0], [1, 0, 1, 0], [0, 1, 0, 1]]
TO_KEY = [[0, 1, 0, 1], [1, 0, 1, 0], [0, 0, 1, 1], [1, 1, 0, 0]]
TO_VALUE = [[1, 0, 0, 0], [0, 2, 0, 0], [0, 0, 1, 0], [1, 0, 0, 2]]
DATA = {
    "words": list(WORDS),
    "embedding": EMBEDDING,
    "query": TO_QUERY,
    "key": TO_KEY,
    "value": TO_VALUE,
}
CODE = """import torch
import clearhead as ch

c = torch.tensor([[1, 0, 1, 0], [0, 2, 0, 1], [1, 1, 0, 2]], dtype=torch.float64)
angle = torch.arange(3, dtype=torch.float64)[:, None] / torch.tensor([1, 100])
x = c + torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)  # c + p
W_q = torch.tensor([[1, 0, 0, 1], [0, 1, 1, 0], [1, 0, 1, 0], [0, 1, 0, 1]], dtype=torch.float64)
W_k = torch.tensor([[0, 1, 0, 1], [1, 0, 1, 0], [0, 0, 1, 1], [1, 1, 0, 0]], dtype=torch.float64)
W_v = torch.tensor([[1, 0, 0, 0], [0, 2, 0, 0], [0, 0, 1, 0], [1, 0, 0, 2]], dtype=torch.float64)
q, k, v = x @ W_q, x @ W_k, x @ W_v"""
