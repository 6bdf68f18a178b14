"""Judging: a clause and a backend become a verdict."""
