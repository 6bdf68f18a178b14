"""Functions that make masks: what they are given, and which convention their result follows."""
