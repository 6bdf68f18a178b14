"""The parameter map of a torch module, found by shapes, names and, where they tie, the numbers."""

from attentest.targets.adapt.parameters.found import FoundTable, find_table

__all__ = ["FoundTable", "find_table"]
