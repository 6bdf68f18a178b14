"""The decoder-only design: RMS norms, gated networks, fewer heads of keys and values."""
