"""Faults of the chapter `mixture_of_experts`."""
