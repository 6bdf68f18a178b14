"""Unusual caches: of models with an encoder and a decoder, and of decoder-only models."""

from attentest.faults.unusual.caches import sequences, texts

MEMBERS = (*sequences.MEMBERS, *texts.MEMBERS)
