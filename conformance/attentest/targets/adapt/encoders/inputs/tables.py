"""The tables of tokens of an encoder, and layers next to them that are no parts of it."""

from collections.abc import Sequence
from typing import Any

from torch import nn

from attentest.targets.adapt.encoders.default_sizes import built_of
from attentest.targets.adapt.encoders.inputs.measured import with_inputs
from attentest.targets.adapt.encoders.seen import Uncalled
from attentest.targets.adapt.objects.unregistered import unregistered
from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.parameters.stacks import Layers
from attentest.targets.adapt.parameters.units import Unit, tables_of
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading
from attentest_spec import Sizes

_MORE = 3
"""The most rows that a table has besides those of the vocabulary: for padding and a mask."""


def tables_of_tokens(
    every: Sequence[Unit], layers: Layers, sizes: Sizes, component: str
) -> list[Unit]:
    """Return the tables of tokens of `every` unit outside of `layers`; some rows more are none."""
    rows = [sizes.source_vocabulary]
    rows += [sizes.target_vocabulary] * (component == "decoder")
    more = [rows[0] + one for one in range(1, _MORE + 1)]
    own = [one for one in every if not layers.holds(one)]
    return tables_of(own, rows, sizes.d_model) or tables_of(own, more, sizes.d_model)


def demand_registered(thing: Any, name: str, reading: Reading) -> None:
    """Raise Uncalled for a class with a table of tokens whose layers are no parts of it."""
    try:
        with undisturbed():
            module = with_inputs(built_of(thing, "encoder", reading), reading)(DISTINCT)
            reason = unregistered(module)
    except Exception:  # code that a user wrote may raise anything: it is no encoder then
        return
    tables = [one for one in module.modules() if isinstance(one, nn.Embedding)]
    least = DISTINCT.source_vocabulary
    if reason and any(least <= one.num_embeddings <= least + _MORE for one in tables):
        raise Uncalled(f"{name} is not judged: {reason}. That is a mistake.")
