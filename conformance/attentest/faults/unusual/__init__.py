"""Unusual but correct implementations: what the suite reports on one of them is a false alarm.

The title of each says in one sentence what is unusual about it.
"""

from collections.abc import Mapping

from attentest.faults.unusual import (
    arrays,
    attending,
    attention,
    batches,
    caches,
    columns,
    decoding,
    documents,
    experts,
    gates,
    initial,
    inputs_outputs,
    language_models,
    layer_norm,
    losses,
    multi_head_attention,
    optimiser,
    rms_norm,
    rotary,
    schedule,
    sublayers,
)
from attentest_spec import Backend

_ALL: tuple[Backend, ...] = (
    *attention.MEMBERS,
    *multi_head_attention.MEMBERS,
    *attending.MEMBERS,
    *layer_norm.MEMBERS,
    *rms_norm.MEMBERS,
    *gates.MEMBERS,
    *experts.MEMBERS,
    *sublayers.MEMBERS,
    *inputs_outputs.MEMBERS,
    *columns.MEMBERS,
    *arrays.MEMBERS,
    *losses.MEMBERS,
    *batches.MEMBERS,
    *schedule.MEMBERS,
    *optimiser.MEMBERS,
    *decoding.MEMBERS,
    *caches.MEMBERS,
    *rotary.MEMBERS,
    *initial.MEMBERS,
    *language_models.MEMBERS,
    *documents.MEMBERS,
)

UNUSUAL: Mapping[str, Backend] = {one.name: one for one in _ALL}

__all__ = ["UNUSUAL"]
