"""flax linen's attention, layer norm and embedding as a backend."""
