"""Losses that were not written for the contract: how they are called, measured and written out."""
