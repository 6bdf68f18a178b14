"""Encoders that make the rows of their layers of images, or of tokens with more than a row each."""
