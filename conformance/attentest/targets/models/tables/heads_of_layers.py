"""Heads of several layers: all else of their model is judged, with one matrix in the place of each.

The function needs nothing else of the suite: written adapters contain its source.
"""

import inspect
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.models.inferring import Inferred, probe_of
from attentest.targets.models.probing import Probe
from attentest.targets.models.trials import Building


def plain_head(model: nn.Module, path: str, width: int, rows: int) -> nn.Module:
    """Return `model` with one linear map to `rows` scores in the place of its head at `path`."""
    owner, _, own = path.rpartition(".")
    setattr(model.get_submodule(owner), own, nn.Linear(width, rows))
    return model


PLAIN_HEAD_SOURCE = "from torch import nn\n\n\n" + inspect.getsource(plain_head)
"""The function as code of its own, for a reproduction or a written adapter."""

_SAID = (
    "not compared: {0} (a head of {1} matrices, which this spec does not have: all else is judged "
    "with one matrix in its place)"
)
_OTHERS = (nn.Linear, nn.LayerNorm, nn.RMSNorm, nn.BatchNorm1d, nn.PReLU)
"""The modules with parameters that a head may hold."""
_MOST = 4


def with_plain_head(built: Building, inferred: Inferred) -> Building:
    """Return `built` with one matrix in the place of a head of several, or as it is.

    A head maps each row of states by itself to the scores of the words, and is called once.
    """
    is_own = "target_vocabulary" in built.known
    sizes = DISTINCT if is_own else DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary)
    probe = probe_of(built, sizes)
    path, number = _head(probe, inferred)
    if not path:
        return built
    said = _SAID.format(path, number)
    rows = f"sizes.{'target' if is_own else 'source'}_vocabulary"
    given = f"{path!r}, sizes.d_model, {rows}"
    return replace(
        built,
        expression=f"{plain_head.__name__}({built.expression}, {given})",
        space={**built.space, plain_head.__name__: plain_head},
        said=(*built.said, said),
        doubts=(*built.doubts, said),
    )


def _head(probe: Probe, inferred: Inferred) -> tuple[str, int]:
    """Return the path of a head of several matrices, and how many it has; "" and 0 for none."""
    calls: list[tuple[str, Tensor, Tensor]] = []

    def note(path: str, _: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        if len(inputs) == 1 and isinstance(inputs[0], Tensor) and isinstance(output, Tensor):
            calls.append((path, inputs[0], output))

    held = [(path, one) for path, one in probe.model.named_modules() if path]
    hooks = [one.register_forward_hook(partial(note, path)) for path, one in held]
    probe.called(inferred.call.compiled(), *probe.tokens)
    for hook in hooks:
        hook.remove()
    width, rows = probe.sizes.d_model, probe.sizes.target_vocabulary
    for path, given, output in calls:
        shapes = (*given.shape[:-1], width), (*given.shape[:-1], rows)
        if (tuple(given.shape), tuple(output.shape)) != shapes:
            continue
        module = probe.model.get_submodule(path)
        owners = [one for one in module.modules() if any(True for _ in one.parameters(False))]
        matrices = sum(isinstance(one, nn.Linear) for one in owners)
        is_once = [own for own, *_ in calls].count(path) == 1
        if not 2 <= matrices <= _MOST or not all(isinstance(one, _OTHERS) for one in owners):
            continue
        alone = probe.called(lambda _, x, module=module: module(x), given[..., :1, :])
        by_row = isinstance(alone, Tensor) and torch.allclose(alone, output[..., :1, :])
        if is_once and by_row:
            return path, matrices
    return "", 0
