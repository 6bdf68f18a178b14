"""Models that take sequences of some lengths alone, as failed calls of them show."""

import re
from collections.abc import Callable

import torch
from torch import Tensor

from attentest.targets.models.probing import SOURCE_LENGTH, Probe
from attentest.targets.models.trials import Building
from attentest_spec import Sizes


def is_of_one_length(failure: str, built: Building, sizes: Sizes) -> bool:
    """Say whether a call failed because its sequences are shorter than the greatest length."""
    numbers = [int(one) for one in re.findall(r"\(?\b(\d+)\b\)?", failure)]
    return "max_length" in built.known and "size" in failure and sizes.max_length in numbers


EQUAL_LENGTHS = (
    " It can be called where source and target have the same length, and not where they differ, as "
    "those of a translation do: a mask, or a number of rows, of one side is used for the other. "
    "That is a mistake, unless equal lengths alone are meant: --anyway (in Python: anyway=True) "
    "judges it with lengths that differ."
)

DIFFERENT_LENGTHS = (
    "{} raises where source and target differ in length, and takes them where they do not: it is "
    "judged with lengths that differ"
)


class EqualProbe(Probe):
    """A model, and tokens of one length to call it with."""

    @property
    def tokens(self) -> tuple[Tensor, Tensor]:
        """Source (2, 6) and target (2, 6)."""
        source, _ = super().tokens
        return source, torch.stack([source[1], source[0].flip(0)])[:, :SOURCE_LENGTH]


def words_of_equal_lengths(probe: Probe, can_be_called: Callable[[Probe], bool]) -> str:
    """Return that a model that cannot be called can be with equal lengths, "" where it cannot."""
    equal = EqualProbe(probe.model, probe.sizes, probe.doubled, probe.widened)
    return EQUAL_LENGTHS * can_be_called(equal)
