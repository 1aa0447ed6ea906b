"""Logits to text: sampling, beams, stopping, sessions; and what runs the model, token by token."""
