"""Cause or effect: the additive noise model under privacy."""
