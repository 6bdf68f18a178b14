"""Search for the variant of the reference that gives the same numbers as a backend."""
