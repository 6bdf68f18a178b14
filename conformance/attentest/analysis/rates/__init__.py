"""Locates the line of a wrong learning rate: code on plain numbers, which no call records.

The schedule is called at one size and step, and again with each of them changed. The expressions of
the lines that run are evaluated as well. From the result back to its operands, the ones that change
as the error does are followed, to the last one that carries the error alone.
"""

from attentest.analysis.rates.error import COMPONENT, line_of_rate

__all__ = ["COMPONENT", "line_of_rate"]
