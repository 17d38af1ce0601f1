"""Designs of effects, regressions, differences in differences and discontinuities."""
