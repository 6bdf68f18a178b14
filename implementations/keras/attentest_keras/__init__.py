"""Keras 3 on its torch backend: attention, layer norm and embedding as a backend."""
