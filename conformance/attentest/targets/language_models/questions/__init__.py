"""Questions about whole decoder-only models whose numbers are those of the reference so far."""
