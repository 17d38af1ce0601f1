"""Conditional independence: is x still linked to y once z is known?  Under a privacy budget."""
