"""Engines that count rows where they are: one small file each, with the same functions."""
