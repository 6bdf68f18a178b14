"""The search of how a whole model is called."""
