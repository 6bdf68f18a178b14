"""Whole models as they come: how one is built, called and mapped is inferred, and written out."""
