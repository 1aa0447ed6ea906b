"""Encoder, decoder and encoder-decoder out of one configurable stack; ids in, logits out."""
