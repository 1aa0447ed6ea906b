"""Pictures of a prediction and its parts, in every format; ``text`` has their words."""
