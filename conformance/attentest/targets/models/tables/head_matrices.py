"""Models whose attention gives one matrix to every head: judged with one for all heads."""

from dataclasses import dataclass, replace
from typing import Any, cast

from attentest.targets.adapt.construction import Construction
from attentest.targets.adapt.wrappers.head_matrices import with_own_heads
from attentest.targets.adapt.wrappers.own_heads import one_for_heads, own_heads
from attentest.targets.models.tables.single_numbers import with_columns
from attentest.targets.models.trials import Building
from attentest_spec import Sizes


def with_own_parameters(built: Building) -> Building:
    """Return `built` with a number for each column of its norms, and a matrix for all heads.

    It is returned as it is where it has these.
    """
    return _with_head_matrices(with_columns(built))


@dataclass(frozen=True)
class _Watched:
    """A model with one vocabulary, whose calls show the matrices that every head gets."""

    built: Building
    heads: tuple[str, ...] = ()
    heads_axis: int = 0
    outputs: tuple[str, ...] = ()

    @property
    def known(self) -> frozenset[str]:
        """The sizes that it is built with."""
        return self.built.known

    def __call__(self, sizes: Sizes) -> Any:
        """Build at `sizes`, with the source's vocabulary for both sides."""
        made = self.built(sizes.but(target_vocabulary=sizes.source_vocabulary))
        return own_heads(made, self.heads, self.heads_axis, sizes.heads, self.outputs)


def _with_head_matrices(built: Building) -> Building:
    found = cast(_Watched, with_own_heads(cast(Construction, _Watched(built))))
    if not (found.heads or found.outputs):
        return built
    said = tuple(one_for_heads(found.heads, found.heads_axis, found.outputs))
    given = f"{found.heads!r}, {found.heads_axis}, sizes.heads, {found.outputs!r}"
    return replace(
        built,
        expression=f"{own_heads.__name__}({built.expression}, {given})",
        space={**built.space, own_heads.__name__: own_heads},
        said=(*built.said, *said),
        doubts=(*built.doubts, *said),
    )
