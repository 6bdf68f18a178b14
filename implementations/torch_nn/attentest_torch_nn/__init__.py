"""The library design: PyTorch's own Transformer, wrapped into a whole model."""
