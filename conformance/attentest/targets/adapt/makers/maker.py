"""The convention of the result of a function that makes masks, and the mask of the contract."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attentest.results.text import summary
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.layouts import Layout
from attentest.targets.adapt.makers.giving import Giving, givings, token_lengths
from attentest.targets.adapt.masks import meanings_by_words
from attentest.targets.adapt.probing import Probe
from attentest.targets.adapt.reading import Reading, Unclear
from attentest_spec import COMPONENTS as CONTRACT
from attentest_spec import Limits
from attentest_spec.masks import causal_mask, padding_mask, target_mask
from attentest_spec.setting import Setting
from attentest_spec.torch import to_array

COMPONENTS: Mapping[str, Callable[..., Any]] = {
    "padding_mask": padding_mask,
    "causal_mask": causal_mask,
    "target_mask": target_mask,
}
"""The components that make masks, with their oracles."""

FIXED_PADS = 10
"""The number of ids that are tried for a pad id that is written in the code."""

_READ: Mapping[str, Callable[[Tensor], Tensor]] = {
    "keep": lambda made: made if made.dtype == torch.bool else made != 0,
    "blocks": lambda made: made.logical_not(),
    "additive": lambda made: made == 0,
}
CODE = {"keep": "{} != 0", "blocks": "{} == 0", "additive": "{} == 0"}
"""The expression that converts a mask of each meaning to that of the contract."""

_WORDS = {
    "keep": "True or 1 may be attended",
    "blocks": "True or 1 blocks",
    "additive": "0 may be attended, and minus infinity is added elsewhere",
}


@dataclass(frozen=True)
class Maker:
    """Calls a function that makes masks, and returns what it made as the contract has it.

    With `cut` its mask is as long as the longest sequence, and all after that is padding.
    """

    adapter: Adapter
    meaning: str = "keep"
    cut: bool = False

    def __call__(self, built: Any, *inputs: Any) -> Any:
        """Return the mask, True = may be attended, with axes for samples, heads and queries."""
        made = self.adapter(built, *inputs)
        if not isinstance(made, Tensor):
            return made
        mask = with_axes(_READ[self.meaning](made), self.adapter.component)
        return as_long(mask, inputs[0].shape[1]) if self.cut else mask


def as_long(mask: Tensor, length: int) -> Tensor:
    """Return `mask` with `length` columns: those behind its own keep nothing."""
    return torch.nn.functional.pad(mask, (0, max(0, length - mask.shape[-1])))


def with_axes(mask: Tensor, component: str) -> Tensor:
    """Give `mask` the axes that are left out: (B, S), (T, T) and (B, T, T) are usual.

    A mask of padding that is written out for every query is made one row.
    """
    if component == "causal_mask":
        return mask[(None,) * (4 - mask.ndim)] if mask.ndim < 4 else mask
    if component == "padding_mask" and mask.ndim == 3 and bool((mask == mask[:, :1]).all()):
        mask = mask[:, :1]
    while 1 < mask.ndim < 4:
        mask = mask.unsqueeze(1)
    return mask


@dataclass(frozen=True)
class Making:
    """A function that makes masks as it is read: its call, its limits, and sentences on both.

    `assumed` are those of the sentences that may be wrong.
    """

    call: Maker
    said: tuple[str, ...]
    limits: Limits = field(default_factory=Limits)
    assumed: tuple[str, ...] = ()


FIXED_PAD = (
    "assumed that its pad id is always {}, as measured: if it is meant to follow the vocabulary, "
    "this is a mistake, and --strict asks"
)
CUT = "its mask is as long as the longest sequence: positions after that are padding"
LENGTHS = "it takes lengths: it is judged with tokens whose padding is at the end"


def making(probe: Probe, code: Code, reading: Reading) -> Making:
    """Return how a function that makes masks is called, and what its result means.

    Words decide what an entry means, the user's above all; else the one meaning that gives exactly
    the mask of the spec.
    """
    meanings, source = meanings_by_words(code.name, code.words, r"mask|\btrue\b")
    if reading.mask:
        meanings, source = (reading.meaning_of(""),), "you"
    if not {*meanings} <= {*_READ}:
        raise Unclear(f"{code.name} makes masks, whose entries are one of {', '.join(_READ)}.")
    ways = list(givings(code.name, code.component, code.signature, reading))
    ways = [one for one in ways if not (one.assumed and reading.strict)]
    for way, meaning in product(ways, meanings or _READ):
        tried = Maker(_adapter(code, way), meaning, way.cut)
        pad = _pad_of(probe, tried, way)
        if pad is not None:
            how = f"by its {source}" if source else "as a probing call shows"
            how = "as you say" if source == "you" else how
            return _making(tried, way, f"what it makes: {_WORDS[meaning]} ({how})", pad, reading)
    if source == "documentation":
        _demand_no_contrary(probe, code, ways, meanings)
    return _wrong(probe, code, [one for one in ways if not one.assumed], meanings)


def _pad_of(probe: Probe, made: Maker, way: Giving) -> int | None:
    """Return the pad id under which a function makes the mask of the spec, None for no id."""
    return next((one for one in _pads(way) if _right(probe, made, way, one)), None)


def _demand_no_contrary(
    probe: Probe, code: Code, ways: Sequence[Giving], meanings: Sequence[str]
) -> None:
    """Raise Unclear where a mask is right, if its entries mean what the documentation denies."""
    for way, other in product(ways, (one for one in _READ if one not in meanings)):
        if _pad_of(probe, Maker(_adapter(code, way), other, way.cut), way) is not None:
            meant = meanings[0]
            raise Unclear(
                f"By its documentation, {_WORDS[meant]} in the mask that {code.name} makes, and a "
                f"probing call shows one where {_WORDS[other]}. Say which one is meant: --set "
                f"mask={meant} or --set mask={other} (in Python: mask='{meant}')."
            )


def _making(made: Maker, way: Giving, said: str, pad: int, reading: Reading) -> Making:
    words = made.adapter.arguments.words
    assumed = (way.assumed,) * bool(way.assumed)
    if way.lengths:
        sentences = (words, said, LENGTHS, *[CUT] * way.cut)
        return Making(made, sentences, Limits(right_padded=("source",)), assumed)
    if way.pads:
        return Making(made, (words, said), assumed=assumed)
    if reading.strict:
        raise Unclear(
            f"The pad id of the mask is always {pad}, as measured, and --strict assumes nothing: "
            f"give it an argument for the id, or judge it without --strict."
        )
    return Making(made, (words, said), Limits(pad=pad), (*assumed, FIXED_PAD.format(pad)))


def _adapter(code: Code, way: Giving) -> Adapter:
    return Adapter(
        code.component,
        code.signature,
        way.arguments,
        Layout("tokens as they are"),
        helpers={"token_lengths": token_lengths},
    )


def _pads(way: Giving) -> Sequence[int]:
    """Return the pad ids that are tried: those of the code, where it takes none."""
    return (0,) if way.pads else range(FIXED_PADS)


def _wrong(probe: Probe, code: Code, ways: Sequence[Giving], meanings: Sequence[str]) -> Making:
    """Return what is judged where no call shows the mask of the spec; Unclear where that is open.

    A function without an argument for the pad id is asked about: a wrong mask does not show the id.
    """
    made = [_shape(probe, Maker(_adapter(code, way), cut=way.cut), way) for way in ways]
    known = [n for n, way in enumerate(ways) if way.pads and isinstance(made[n], tuple)]
    if not known:
        why = next((one for one in made if isinstance(one, str)), "it does not hide one id alone")
        raise Unclear(_uncalled(code, why))
    right = [n for n in known if made[n] == _wanted(code.component, ways[n]).shape]
    number = next(iter([*right, *known]))
    if not meanings and not right:
        raise Unclear(_uncalled(code, f"it makes a mask of shape {made[number]}"))
    if not meanings:
        shown = _added(probe, _adapter(code, ways[number]), ways[number])
        options = " or ".join(f"--set mask={one}" for one in shown)
        raise Unclear(
            f"Nothing says what the entries of the mask that {code.name} makes mean, and under no "
            f"meaning is it the mask of the spec. Say which one: {options} (in Python: mask=..)."
        )
    chosen = next(iter(meanings))
    said = f"what it makes: {_WORDS[chosen]} (a probing call does not show the mask of the spec)"
    adapter = _adapter(code, ways[number])
    limits = Limits(right_padded=("source",) if ways[number].lengths else ())
    return Making(Maker(adapter, chosen, ways[number].cut), (adapter.arguments.words, said), limits)


def _added(probe: Probe, adapter: Adapter, way: Giving) -> Sequence[str]:
    """Return what entries can mean: a mask with infinite ones is added, another one is not."""
    raw = adapter(probe.built, *_inputs(adapter.component, way, 0))
    return ("additive",) if bool(raw.isinf().any()) else ("keep", "blocks")


def _uncalled(code: Code, why: str) -> str:
    """Return the question about a function that no call shows to make the mask of the spec."""
    inputs = ", ".join(CONTRACT[code.component].inputs)
    return (
        f"{code.name}({', '.join(code.signature.parameters)}) was taken for {code.component}"
        f"({inputs}), and no call that was tried makes the mask of the spec ({why}). Write in a "
        f"file of your own, with what makes its arguments of {inputs}: `from attentest_spec.torch "
        f"import of_function` and `backend = of_function(lambda {inputs}: {code.name}(..), "
        f'"{code.component}")`.'
    )


def _inputs(component: str, way: Giving, pad: int) -> tuple[Any, ...]:
    if component == "causal_mask":
        return (5,)
    rows = _AT_END if way.lengths else _ANYWHERE
    return torch.tensor(rows).where(torch.tensor(rows) != 0, pad), pad


_ANYWHERE = [[13, 0, 12, 0, 15], [11, 12, 14, 13, 0]]
_AT_END = [[13, 11, 12, 0, 0], [11, 12, 14, 13, 0]]
"""Tokens for probing, where 0 is replaced by the pad id: another one is tried up to 10."""


def _wanted(component: str, way: Giving, pad: int = 0) -> Any:
    inputs = _inputs(component, way, pad)
    return COMPONENTS[component](
        Setting(), *(to_array(one) if isinstance(one, Tensor) else one for one in inputs)
    )


def _shape(probe: Probe, tried: Maker, way: Giving) -> tuple[int, ...] | str:
    """Return the shape of the mask that is made, and why there is none in a sentence."""
    try:
        made = tried(probe.built, *_inputs(tried.adapter.component, way, 0))
    except Exception as failure:  # code that a user wrote may raise anything
        return summary(failure, 120)
    return tuple(made.shape) if isinstance(made, Tensor) else f"it returns a {type(made).__name__}"


def _right(probe: Probe, tried: Maker, way: Giving, pad: int) -> bool:
    """Say whether the mask that is made for one input is that of the spec."""
    component = tried.adapter.component
    inputs = _inputs(component, way, pad)
    try:
        raw, made = tried.adapter(probe.built, *inputs), tried(probe.built, *inputs)
    except Exception:  # code that a user wrote may raise anything
        return False
    if not isinstance(made, Tensor) or bool(raw.isinf().any()) != (tried.meaning == "additive"):
        return False
    return bool(np.array_equal(to_array(made), _wanted(component, way, pad)))
