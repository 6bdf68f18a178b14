"""Tables of positions of decoder-only models whose number of rows is fixed."""

from dataclasses import replace

import torch

from attentest.targets.language_models.calling import Call, probe_tokens
from attentest.targets.language_models.construction.building import PROBE, Building
from attentest.targets.language_models.probing import probe_of, probe_sizes
from attentest.targets.models.tables.fixed_rows import SAID, fixed_tables, resized, resizing
from attentest_spec.torch.gradients import gradients

_DIFFERENT = (PROBE, PROBE.but(d_model=48, d_ff=52, target_vocabulary=31, max_length=37))
"""Two sets of sizes: a table that has as many rows at both has a fixed number."""


def with_free_rows(built: Building, call: Call) -> Building:
    """Return `built` with as many rows of positions as the sizes say, where their number is fixed.

    That is a table of which a call reads one row for each token. It is returned as it is where its
    constructor takes a length, or where it holds no such table.
    """
    fixed = {} if "max_length" in built.known else fixed_tables(built, _DIFFERENT)
    fixed = {name: place for name, place in fixed.items() if _reads_one_each(built, call, name)}
    if len(fixed) != 1:
        return built
    [(name, (_, rows))] = fixed.items()
    return replace(
        built,
        expression=resizing(built.expression, fixed),
        space={**built.space, resized.__name__: resized},
        doubts=(*built.doubts, SAID.format(rows, name)),
        rows=rows,
    )


def _reads_one_each(built: Building, call: Call, name: str) -> bool:
    """Say whether as many rows of the table `name` have an effect as a text has tokens."""
    model, tokens = probe_of(built, probe_sizes(built)), probe_tokens()
    table = model.get_parameter(name)
    try:
        with torch.enable_grad():
            output = call.compiled()(model, tokens)
            (slope,) = gradients(output.square().sum(), [table])
    except Exception:  # code that a user wrote may raise anything
        return False
    used = 0 if slope is None else int(slope.reshape(-1, table.shape[-1]).any(-1).sum())
    return used == tokens.shape[1]
