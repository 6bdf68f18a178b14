"""Arguments such as `d_query` that are the width of a head by their names, and of the model."""

from collections.abc import Iterator
from dataclasses import replace
from operator import attrgetter

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.construction import Construction
from attentest.targets.adapt.fillings import Filling
from attentest.targets.adapt.names import words
from attentest.targets.constants.numbers_read import HEAD_WIDTH_CODE

_WIDTHS = words(
    "dq dquery dqueries dkv dkey dkeys dvalue dvalues querydim keydim valuedim dqk dk dv"
)
"""Names of what has the width of queries or keys, before or behind their projections."""

_WHOLE = Filling("d_model", attrgetter("d_model"), frozenset(["d_model"]), "sizes.d_model")


def with_model_widths(found: Construction) -> Iterator[Construction]:
    """Yield `found` with the width of the model, that of all heads, for those arguments.

    That is tried where heads of that width refuse to be built.
    """
    if "heads" not in found.known:
        return
    whole = {
        own: _WHOLE
        for own, one in found.fillings.items()
        if squashed(own) in _WIDTHS and one.code in ("head_width(sizes)", HEAD_WIDTH_CODE)
    }
    if whole:
        yield replace(found, fillings={**found.fillings, **whole})
