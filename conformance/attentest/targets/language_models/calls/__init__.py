"""Calls of decoder-only models: with labels, with positions, in training mode."""
