"""Designs of independence: x and y are independent given z, unless a design says that they are linked.

Each is a function of (rows, generator, link): ``link`` adds that much of x's own noise to y, 0 for a true null.
"""
