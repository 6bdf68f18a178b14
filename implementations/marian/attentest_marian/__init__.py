"""Hugging Face transformers' Marian, behind the contract of attentest."""
