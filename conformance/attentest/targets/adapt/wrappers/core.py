"""Sublayers that hold their own norm, their residual sum, or both: the rest of them is judged.

The class needs nothing else of the suite: reproductions and written adapters contain its source.
"""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.parameters import FoundTable
from attentest.targets.adapt.probing import SIZES, Probe, undisturbed
from attentest.targets.adapt.reading import Reading
from attentest.targets.adapt.wrappers.wrapper import WIDTH, Wrapper
from attentest.targets.deep_copies import copy_of
from attentest_spec.choices import Value

COMPONENTS = ("feed_forward", "multi_head_attention")
"""The components that are sublayers, and are written with their norm inside."""


class Held(nn.Module):
    """Returns the tensor that it holds, whatever it is given."""

    x: Tensor | None = None

    def forward(self, *_: Any) -> Tensor | None:
        """Return it."""
        return self.x


class Core(nn.Module):
    """The result of `sublayer` without its norm at the path `norm`, which passes its input on.

    The path is "" for none. With `residual`, the first input is taken from the result, or its part
    `part`, again. With `zero`, the sublayer gets zeros in its place, and the norm gives the input:
    nothing is added to the result then, and nothing rounded.
    """

    def __init__(
        self,
        sublayer: nn.Module,
        width: int,
        *,
        norm: str = "",
        residual: bool = False,
        zero: bool = False,
        part: int | str | None = None,
    ) -> None:
        super().__init__()
        self.held = Held() if zero else None
        if norm:
            place, _, own = norm.rpartition(".")
            setattr(sublayer.get_submodule(place), own, self.held or nn.Identity())
        self.sublayer = sublayer
        self.width, self.residual, self.part = width, residual, part

    def forward(self, *args: Any, **named: Any) -> Tensor:
        """Return the output alone."""
        tensors = [one for one in (*args, *named.values()) if isinstance(one, Tensor)]
        first = tensors[0]
        if self.held is not None:
            self.held.x, zeros = first, first.new_zeros(first.shape)
            args = tuple(zeros if one is first else one for one in args)
            named = {name: zeros if one is first else one for name, one in named.items()}
        found = self.sublayer(*args, **named)
        if self.held is not None:
            self.held.x = None
        if isinstance(self.part, str) and not isinstance(found, dict):
            found = getattr(found, self.part)
        elif self.part is not None:
            found = found[self.part]
        return found - first if self.residual else found  # type: ignore[no-any-return]


CORE_SOURCE = "\n".join(
    [
        "from typing import Any",
        "",
        "from torch import Tensor, nn",
        "",
        "",
        inspect.getsource(Held),
        "",
        inspect.getsource(Core),
    ]
)
"""The class as code of its own, for a reproduction or a written adapter."""

_TAKEN_OFF = (
    "assumed that its norm ({}){} of its own: what it computes without is judged. If you meant the "
    "component alone, this is a mistake, and --strict reports it"
)
_SUM_TAKEN_OFF = (
    "assumed that its residual sum is a part of its own: what it computes without is judged. If "
    "its caller adds the input too, this is a mistake, and --strict reports it"
)


def without_norm(
    code: Code, probe: Probe, adapter: Adapter, found: FoundTable, reading: Reading
) -> Iterator[Code]:
    """Yield a sublayer without the one norm in it, and then without its residual sum."""
    module = probe.built
    if code.component not in COMPONENTS or code.wrapper is not None or reading.strict:
        return
    if code.construction is None or not isinstance(module, nn.Module):
        return
    norms = norms_of(module, probe.dtype)
    if not norms and adds_at_zero(probe, adapter):
        yield code.wrapped(Wrapper(Core, CORE_SOURCE, WIDTH, _SUM_TAKEN_OFF, _sum_alone(adapter)))
    if len(norms) != 1 or (found.table and not found.unplaced):
        return
    output = adapter.returns.output
    for way in ("", "zero", "residual"):
        if way and not _adds_its_input(probe, adapter, norms[0]):
            return
        beside = " and its residual sum are parts" if way else " is a part"
        options: dict[str, Any] = {"norm": norms[0]}
        options |= {way: True} if way else {}
        options |= {} if output is None else {"part": output}
        sentence = _TAKEN_OFF.format(norms[0], beside)
        yield code.wrapped(Wrapper(Core, CORE_SOURCE, WIDTH, sentence, options))


def rounds(code: Code, choices: Mapping[str, Value]) -> bool:
    """Say whether a result is lost to rounding where the input is taken from the sum with it.

    That of a gated network is as small as the square of its input.
    """
    summed = code.wrapper is not None and bool(code.wrapper.options.get("residual"))
    return summed and choices.get("feed_forward_gate") == "gated"


def _sum_alone(adapter: Adapter) -> dict[str, Any]:
    output = adapter.returns.output
    return {"residual": True} | ({} if output is None else {"part": output})


def adds_at_zero(probe: Probe, adapter: Adapter) -> bool:
    """Say whether a sublayer whose parameters are all 0 returns its first input as it is."""
    if adapter.component not in COMPONENTS or not isinstance(probe.built, nn.Module):
        return False
    try:
        sublayer = copy_of(probe.built)
    except Exception:  # tensors that were computed, as of a weight norm, have no copies
        return False
    for one in sublayer.parameters():
        one.data.zero_()
    given = _given(probe, adapter)
    found = replace(probe, built=sublayer).called(adapter, given)
    return isinstance(found, Tensor) and torch.equal(found, next(iter(given.values())))


def _given(probe: Probe, adapter: Adapter) -> dict[str, Any]:
    """Return inputs of `adapter`, with the one mask that code takes which is causal by itself."""
    given = dict(probe.given(adapter))
    if adapter.causal and "mask" in given:
        length = next(iter(given.values())).shape[-2]
        given["mask"] = torch.ones((1, 1, length, length), dtype=torch.bool).tril()
    return given


class _Ones(nn.Module):
    """Takes the place of a norm: its result is one everywhere."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.ones_like(x)


def _adds_its_input(probe: Probe, adapter: Adapter, norm: str) -> bool:
    """Say whether what is added is the input as it is given, and not what the norm makes of it.

    Where the norm gives ones, it is all that is left of the input; a norm of the sum leaves ones.
    """
    sublayer = copy_of(probe.built)
    place, _, own = norm.rpartition(".")
    setattr(sublayer.get_submodule(place), own, _Ones())
    probed, given = replace(probe, built=sublayer), _given(probe, adapter)
    role = next(iter(given))
    moved = 3.0 * given[role]
    inputs = {name: moved if one is given[role] else one for name, one in given.items()}
    before, after = probed.called(adapter, given), probed.called(adapter, inputs)
    if isinstance(before, str) or isinstance(after, str) or before.shape != moved.shape:
        return False
    is_last = bool((before == 1).all() and (after == 1).all())
    return is_last or torch.allclose(after - before, moved - given[role], rtol=1e-4, atol=1e-4)


def norms_of(module: nn.Module, dtype: torch.dtype) -> list[str]:
    """Return the paths of the outermost parts that are norms by their parameters and numbers."""
    found: list[str] = []
    for path, one in module.named_modules():
        shapes = {tuple(held.shape) for held in one.parameters()}
        inside = any(path.startswith(f"{other}.") for other in found)
        if path and shapes == {(SIZES.d_model,)} and not inside and _ignores_size(one, dtype):
            found.append(path)
    return found


def _ignores_size(norm: nn.Module, dtype: torch.dtype) -> bool:
    """Say whether three times the input gives the same output, as a norm does."""
    x = torch.randn(2, 5, SIZES.d_model, generator=torch.Generator().manual_seed(0)).to(dtype)
    try:
        with undisturbed():
            one, other = norm(x), norm(3 * x)
    except Exception:  # code that a user wrote may raise anything
        return False
    return isinstance(one, Tensor) and torch.allclose(one, other, rtol=1e-3, atol=1e-3)
