"""Models that take sequences of some lengths alone, as failed calls of them show."""

import re
from collections.abc import Callable

import torch
from torch import Tensor

from attentest.targets.models.calling import Call
from attentest.targets.models.probing import SOURCE_LENGTH, Probe, hides_filling
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


class LongTarget(Probe):
    """A model, and tokens to call it with of which the target's are more than the source's."""

    @property
    def tokens(self) -> tuple[Tensor, Tensor]:
        """Source (2, 4) and target (2, 6)."""
        source, target = super().tokens
        return target, source


def takes_equal_lengths(probe: Probe, can_be_called: Callable[[Probe], bool]) -> bool:
    """Say whether a model that cannot be called can be with equal lengths."""
    return can_be_called(EqualProbe(probe.model, probe.sizes, probe.doubled, probe.widened))


def hides_all_filling(probe: Probe, call: Call) -> bool:
    """Say whether the padding with which `call` fills sequences changes no row of the output."""
    longer = LongTarget(probe.model, probe.sizes, probe.doubled, probe.widened)
    several = (probe, longer) if call.conventions.equal else (probe,)
    return all(hides_filling(one, call.compiled()) for one in several)
