"""Sound implementations of unlike make: what the suite says against one of them is a false alarm.

Each member's title says in one sentence what is odd about it.
"""

from collections.abc import Mapping

from attentest.faults.unusual import (
    arrays,
    attention,
    columns,
    ends,
    layer_norm,
    multi_head_attention,
    sublayers,
)
from attentest_spec import Backend

_ALL: tuple[Backend, ...] = (
    *attention.MEMBERS,
    *multi_head_attention.MEMBERS,
    *layer_norm.MEMBERS,
    *sublayers.MEMBERS,
    *ends.MEMBERS,
    *columns.MEMBERS,
    *arrays.MEMBERS,
)

UNUSUAL: Mapping[str, Backend] = {one.name: one for one in _ALL}

__all__ = ["UNUSUAL"]
