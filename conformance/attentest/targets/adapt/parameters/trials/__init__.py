"""Tries parameter maps against the reference, and the choices that they leave open."""
