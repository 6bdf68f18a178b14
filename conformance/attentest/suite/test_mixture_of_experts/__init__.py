"""Checks of the chapter `mixture_of_experts`."""
