"""Comparisons, each a command of its own; never imported by the library."""
