"""Pictures of insight: one description, several renderers."""
