"""Modules around a user's own: what its caller does is done there, and the rest is judged."""
