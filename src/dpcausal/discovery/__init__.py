"""Causal graphs from tables of many columns."""
