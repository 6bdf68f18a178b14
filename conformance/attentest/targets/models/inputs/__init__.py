"""The inputs of whole models that come together in one argument."""
