"""Differentially private tests of conditional independence."""
