"""The search for formulas among the numbers that a call of a decoder-only model computes."""
