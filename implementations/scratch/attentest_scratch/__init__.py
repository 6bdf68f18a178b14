"""The one-page design: one layer, wide heads, additive masks, one shared norm, no dropout."""
