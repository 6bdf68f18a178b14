"""flax linen's attention, layer norm and embedding behind the contract."""
