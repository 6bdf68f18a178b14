"""A Transformer that is being written."""
