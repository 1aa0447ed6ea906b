"""What each head does, with evidence: properties, counts, baselines, roles, interventions."""
