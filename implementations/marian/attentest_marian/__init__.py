"""Hugging Face transformers' Marian as a backend."""
