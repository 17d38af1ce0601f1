"""Scores of dependence with proved sensitivities."""
