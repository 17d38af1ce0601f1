"""Differentially private causal inference."""
