"""Fits with bounded predictions and, where used for training privacy, proved stability."""
