"""Sentences about what is assumed of inferred code, and the facts that they compare."""
