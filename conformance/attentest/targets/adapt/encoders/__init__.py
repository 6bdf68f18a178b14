"""Encoders that embed their tokens themselves, and the stack of layers inside."""
