"""How large is it: treatment effects and regressions, from noisy numbers that left once and are asked again free."""
