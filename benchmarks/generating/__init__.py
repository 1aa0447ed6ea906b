"""What the benchmark of generation is made of; ``generation.py`` runs it."""
