"""Faults of the chapter `feed_forward`."""
