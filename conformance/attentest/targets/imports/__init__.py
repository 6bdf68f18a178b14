"""Helpers of the import of users' files."""
