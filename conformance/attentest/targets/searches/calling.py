"""The call of a function that decodes with a stand-in for the model, greedily or with a beam."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from attentest.targets.searches.arguments import Roles, with_globals
from attentest.targets.searches.stand_in import StandIn, arguments_of
from attentest_spec import Sizes, Unsupported


@dataclass(frozen=True)
class SearchCall:
    """The call of a function: its roles, axes, one sequence at a time or a batch, and lengths.

    `counts_new` says that its length is that of the new tokens, `keeps_begin` that the given ones
    are in what it returns. `fills_end` says that the end token fills what comes after it: a
    result that is shorter, because all sequences ended, is filled up with that.
    """

    function: Callable[..., Any]
    roles: Roles
    sequence_first: bool = False
    alone: bool = False
    counts_new: bool = False
    keeps_begin: bool = True
    fills_end: bool = False

    def stand_in(self, sizes: Sizes) -> StandIn:
        """Build the model that it is called with."""
        return StandIn(sizes, sequence_first=self.sequence_first)

    def batches(
        self, model: StandIn, scores: Tensor, begin: Tensor
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the source and the given tokens of each call that the whole batch needs.

        Scores (B, L, V, V) and tokens (B, P) are those of the contract. Raises Unsupported for
        given tokens that the function has no argument for.
        """
        if not self.roles.has("begin") and begin.shape[1] > 1:
            raise Unsupported("it takes a start token, and no other given ones")
        model.script.unpadded(begin)
        source = model.play(scores, begin)
        if not self.alone and not self.roles.has("begin") and (begin != begin[:1]).any():
            raise Unsupported("it takes one start token for all sequences")
        each = [slice(row, row + 1) for row in range(len(begin))] if self.alone else [slice(None)]
        for at in each:
            yield source[:, at] if self.sequence_first else source[at], begin[at]

    def raw(
        self, model: StandIn, source: Tensor, begin: Tensor, length: int, **sizes: float
    ) -> Any:
        """Return what the function returns; `sizes` are other numbers, by their role."""
        given = length - begin.shape[1] if self.counts_new else length
        values = {**arguments_of(model, source, begin, given), **sizes}
        named = {own: values[role] for role, own in self.roles.arguments.items()}
        outside = {own: values[role] for role, own in self.roles.globals_of.items()}
        with with_globals(self.function, outside):
            return self.function(**self.roles.fixed, **named)
