"""Rotary positions as people write them: classes and functions, with tables and without."""
