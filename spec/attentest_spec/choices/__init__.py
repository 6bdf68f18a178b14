"""The design choices on which correct implementations differ, and those of the paper.

A choice is one entry in `table.py` and one field of :class:`Choices`; a new option is one entry
there and one line in an oracle. The first option applies when nothing is
declared. Where the paper does not specify one, every listed option conforms and is reported.
"""

from attentest_spec.choices.choice import Choice, Option, Value
from attentest_spec.choices.values import CHOICES, PAPER, Choices

__all__ = ["CHOICES", "PAPER", "Choice", "Choices", "Option", "Value"]
