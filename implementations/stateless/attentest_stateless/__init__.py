"""A decoder-only language model as functions of its weights, and its backend for attentest."""
