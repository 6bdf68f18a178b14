"""The outputs of whole models."""
