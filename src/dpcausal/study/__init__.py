"""Studies: a file of questions under one budget, planned, asked, and reported."""
