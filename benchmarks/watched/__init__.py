"""What the table of watched models is made of; ``watched_models.py`` runs it."""
