"""The same numbers by other packages."""
