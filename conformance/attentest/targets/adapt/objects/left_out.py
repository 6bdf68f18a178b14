"""Arguments that carry what belongs to a norm: the function that makes it, or what follows it."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.fillings import ONE_HEAD, Filling
from attentest.targets.adapt.names import NORM_FACTORIES, words
from attentest.targets.adapt.probing import SIZES, undisturbed

LINEAR = "torch.nn.Linear"
"""The class of the linear maps that a constructor takes as modules."""

LEFT_OUT = Filling("torch.nn.Identity()", lambda sizes: nn.Identity())
"""The filling of an argument that carries the sublayer behind a norm: there is none."""

SUBLAYER = Filling("torch.nn.Identity()", lambda sizes: nn.Identity())
"""The filling of an argument that carries the sublayer of a residual sum: each call gives it."""

_SUBLAYERS = words("fn func function net sublayer submodule module")
"""Names of the argument that carries the sublayer behind a norm."""


_IN_SUMS = words("layer block sublayerfn subblock")
"""More names of the one that a residual sum is built with."""


class _Negated(nn.Module):
    def forward(self, x: Tensor, *_: Any, **__: Any) -> Tensor:
        return -x


def left_out(
    thing: Callable[..., Any], component: str, own: str, read: Mapping[str, Filling | None]
) -> Filling | None:
    """Return :data:`LEFT_OUT` where `own` is the sublayer behind a norm, None where it is not.

    With a sublayer that changes the sign, all that is returned has to change its sign: nothing is
    added to what the sublayer returns. The other arguments of `thing` are `read`. It is
    :data:`SUBLAYER` of a residual sum, which both change.
    """
    summed = component == "residual" and squashed(own) in (*_SUBLAYERS, *_IN_SUMS)
    normed = component in ("layer_norm", "rms_norm") and squashed(own) in _SUBLAYERS
    if not (summed or normed):
        return None
    source = torch.Generator().manual_seed(0)
    x = torch.randn(2, 5, SIZES.d_model, generator=source)
    try:
        values = {name: one.value(SIZES) for name, one in read.items() if one is not None}
        with undisturbed():
            plain, negated = (thing(**{**values, own: f})(x) for f in (nn.Identity(), _Negated()))
        is_behind = plain.shape == x.shape and torch.equal(plain, -negated)
        is_summed = summed and plain.shape == x.shape and not torch.equal(plain, negated)
    except Exception:  # code that a user wrote may raise anything
        return None
    if summed:
        return SUBLAYER if is_summed and not is_behind else None
    return LEFT_OUT if is_behind and bool(plain.any()) else None


def makes_norms(parameter: inspect.Parameter) -> bool:
    """Say whether a required argument is the function that makes the norms, and no name of one."""
    return squashed(parameter.name) in NORM_FACTORIES and parameter.annotation not in (str, "str")


def said_of(fillings: Mapping[str, Filling]) -> Iterator[str]:
    """Yield the assumptions about modules that a constructor takes, and classes of these."""
    maps = [own for own, one in fillings.items() if one.code.startswith(LINEAR)]
    if maps:
        yield f"assumed that {' and '.join(maps)} are linear maps, and judged with {LINEAR}"
    for own, one in fillings.items():
        yield from _said_of_norms(own, one)


def _said_of_norms(own: str, filling: Filling) -> Iterator[str]:
    """Yield the assumption about the argument `own` of a norm, or of what holds norms."""
    if filling.words == nn.LayerNorm.__name__ and squashed(own) in NORM_FACTORIES:
        yield f"assumed that {own} makes norms, and judged with torch.nn.LayerNorm"
    elif inspect.isclass(held := filling.value(SIZES)) and issubclass(held, nn.Module):
        yield f"assumed that {own} is the class {filling.words}"
    if filling is ONE_HEAD:
        yield f"assumed that {own} is a number of heads with weights of their own: one is judged"
    if filling is LEFT_OUT:
        yield f"assumed that {own} is what follows the norm: the norm is judged alone"
