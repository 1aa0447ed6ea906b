"""Text to a better model: batches, objectives, optimisers and the loop, on one core or on many."""
