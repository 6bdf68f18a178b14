"""Norms that a whole model holds and never calls: it is judged without them where that fits.

The function needs nothing else of the suite: written adapters contain its source.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.encoders.entering import is_norm
from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.models.inferring import Inferred, probe_of
from attentest.targets.models.trials import Building
from attentest.targets.whole import AdaptedWhole


def left_out(model: nn.Module, paths: Sequence[str]) -> nn.Module:
    """Return `model` without the modules of these `paths`, which nothing calls."""
    for path in paths:
        above, _, own = path.rpartition(".")
        setattr(model.get_submodule(above), own, nn.Identity())
    return model


LEFT_OUT_SOURCE = "\n".join(
    [
        *("from collections.abc import Sequence", "", "from torch import nn", "", ""),
        inspect.getsource(left_out),
    ]
)
"""The function as code, for a reproduction or a written adapter."""

_SAID = "{} is held and never called, so that nothing trains it: judged without it"


def with_idle_norms_left_out(
    built: Building,
    inferred: Inferred,
    reading: Reading,
    adapted: Callable[[Building, Inferred], AdaptedWhole],
) -> AdaptedWhole:
    """Return what `adapted` makes of `built`, without its idle norms where the numbers fit then.

    They have to be behind stacks, or before them, whose layers norm sums: where layers norm their
    inputs, a norm that is not called is missing behind the stack.
    """
    idle = [] if reading.strict else _idle_norms(built, inferred)
    if idle:
        other = without(built, idle, _SAID.format(" and ".join(idle)))
        try:
            made = adapted(other, inferred)
        except Unclear:  # what it is with them says more
            made = None
        if made and made.fits and made.choices.get("norm_placement") == "post":
            return made
    return adapted(built, inferred)


def without(built: Building, norms: Sequence[str], said: str) -> Building:
    """Return `built` without modules of these paths, with the sentence `said` on them."""
    return replace(
        built,
        expression=f"{left_out.__name__}({built.expression}, {norms})",
        space={**built.space, left_out.__name__: left_out},
        said=(*built.said, said),
        doubts=(*built.doubts, said),
    )


def _idle_norms(built: Building, inferred: Inferred) -> list[str]:
    """Return the norms outside of layers that a call neither calls nor depends on."""
    probe = probe_of(built, DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary))
    held = {
        path: one
        for path, one in probe.model.named_modules()
        if any(True for _ in one.parameters(recurse=False)) and is_norm(one)
        if not any(part.isdigit() for part in path.split("."))
    }
    called = set[str]()

    def note(path: str, *_: Any) -> None:
        called.add(path)

    hooks = [one.register_forward_pre_hook(partial(note, path)) for path, one in held.items()]
    call = inferred.call.compiled()
    before = probe.called(call, *probe.tokens)
    for one in hooks:
        one.remove()
    idle = [path for path in held if path not in called]
    for path in idle:
        for one in held[path].parameters():
            one.data += torch.linspace(-1, 2, one.numel(), dtype=one.dtype).view_as(one)
    after = probe.called(call, *probe.tokens) if idle else before
    if not (isinstance(before, Tensor) and isinstance(after, Tensor)):
        return []
    return idle if torch.equal(before, after) else []
