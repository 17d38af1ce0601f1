"""Replications of the four papers, and baselines of the literature."""
