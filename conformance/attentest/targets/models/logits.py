"""The scale of the logits of a whole model, where its output fits no options: its calls show it."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from math import sqrt
from typing import Any

from torch import Tensor, nn

from attentest.targets.adapt.encoders.stack import replaced
from attentest.targets.models.probing import Probe
from attentest_spec.choices import Value
from attentest_spec.mapping import Table, locate

_NEAR = 1e-9


def scale_of_logits(probe: Probe, call: Callable[..., Any], table: Table) -> dict[str, Value]:
    """Return that logits are divided by the root of the width, where a call shows it, else {}.

    Either the states are divided before the generator, or the logits behind it.
    """
    try:
        path, _, _ = locate("generator.weight", table).name.rpartition(".")
        generator = probe.model.get_submodule(path)
    except (AttributeError, KeyError):
        return {}
    if not isinstance(generator, nn.Linear):
        return {}
    calls: list[tuple[nn.Module, Any, Any]] = []

    def noted(one: nn.Module, inner: Callable[..., Any], *args: Any, **named: Any) -> Any:
        given = _kept(args[0]) if args else None
        output = inner(*args, **named)
        calls.append((one, given, _kept(output)))
        return output

    with ExitStack() as watching:
        for one in probe.model.modules():
            if one is not probe.model and not isinstance(one, nn.ModuleList | nn.ModuleDict):
                watching.enter_context(replaced(one, partial(noted, one)))
        output = probe.called(call, *probe.tokens)
    own = [(given, made) for one, given, made in calls if one is generator]
    if len(own) != 1 or not isinstance(output, Tensor):
        return {}
    ((given, made),) = own
    scale = 1 / sqrt(probe.sizes.d_model)
    states = [one for _, _, one in calls if isinstance(one, Tensor)]
    before = any(_is_scaled(given, one, scale) for one in states)
    return {"logit_scale": "inverse-sqrt-d"} if before or _is_scaled(output, made, scale) else {}


def _kept(value: Any) -> Any:
    """Return a copy of a tensor, which code may change in place afterwards."""
    return value.clone() if isinstance(value, Tensor) else None


def _is_scaled(found: Any, plain: Any, scale: float) -> bool:
    """Say whether `found` is the tensor `plain` times `scale`."""
    if not (isinstance(found, Tensor) and isinstance(plain, Tensor) and found.shape == plain.shape):
        return False
    return bool((found - scale * plain).abs().max() <= _NEAR * found.abs().max())
