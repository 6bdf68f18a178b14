"""Checks of the chapter `multi_head_attention`."""
