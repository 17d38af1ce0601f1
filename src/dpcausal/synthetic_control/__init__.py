"""Differentially private synthetic controls."""
