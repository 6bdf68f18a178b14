"""Hugging Face transformers' decoder-only models as backends, made of their configurations."""

from attentest_transformers_causal.backend import of_config
from attentest_transformers_causal.structure import NotJudged

__all__ = ["NotJudged", "of_config"]
