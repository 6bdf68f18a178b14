"""Functions that make masks: which convention their result follows, and the contract's from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.layouts import Layout
from attentest.targets.adapt.masks import meanings_by_words
from attentest.targets.adapt.probing import Probe
from attentest.targets.adapt.reading import Unclear
from attentest_spec.masks import causal_mask, padding_mask, target_mask
from attentest_spec.setting import Setting
from attentest_spec.torch import to_array

COMPONENTS: Mapping[str, Callable[..., Any]] = {
    "padding_mask": padding_mask,
    "causal_mask": causal_mask,
    "target_mask": target_mask,
}
"""The components that make masks, with their oracles."""

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
    """Calls a function that makes masks, and returns what it made as the contract has it."""

    adapter: Adapter
    meaning: str = "keep"

    def __call__(self, built: Any, *inputs: Any) -> Any:
        """Return the mask, True = may be attended, with axes for samples, heads and queries."""
        made = self.adapter(built, *inputs)
        if not isinstance(made, Tensor):
            return made
        return with_axes(_READ[self.meaning](made), self.adapter.component)


def with_axes(mask: Tensor, component: str) -> Tensor:
    """Give `mask` the axes that are left out: (B, S), (T, T) and (B, T, T) are usual."""
    if component == "causal_mask":
        return mask[(None,) * (4 - mask.ndim)] if mask.ndim < 4 else mask
    while 1 < mask.ndim < 4:
        mask = mask.unsqueeze(1)
    return mask


def maker(
    probe: Probe, adapter: Adapter, words: str, name: str, meaning: str = ""
) -> tuple[Maker, list[str]]:
    """Return the caller of a function that makes masks, and what to say of its convention.

    Words decide what an entry means, `meaning` above all; else the one meaning that gives exactly
    the mask of the spec.
    """
    whole = replace(adapter, layout=Layout("tokens as they are"))
    meanings, source = meanings_by_words(name, words, r"mask|\btrue\b")
    if meaning:
        meanings, source = (meaning,), "you"
    for tried in meanings or _READ:
        if _right(probe, Maker(whole, tried)):
            how = f"by its {source}" if source else "as a probing call shows"
            how = "as you say" if source == "you" else how
            return Maker(whole, tried), [f"what it makes: {_WORDS[tried]} ({how})"]
    if not meanings:
        options = " or ".join(f"--set mask={one}" for one in _READ)
        raise Unclear(
            f"Nothing says what the entries of the mask that {name} makes mean, and under no "
            f"meaning is it the mask of the spec. Say which one: {options} (in Python: mask=..)."
        )
    chosen = next(iter(meanings))
    return Maker(whole, chosen), [
        f"what it makes: {_WORDS[chosen]} (a probing call does not show the mask of the spec)"
    ]


def _right(probe: Probe, tried: Maker) -> bool:
    """Say whether the mask that is made for one input is that of the spec."""
    tokens = torch.tensor([[3, 0, 2, 0, 5], [1, 2, 4, 3, 0]])
    component = tried.adapter.component
    inputs = (5,) if component == "causal_mask" else (tokens, 0)
    try:
        raw, made = tried.adapter(probe.built, *inputs), tried(probe.built, *inputs)
    except Exception:  # code that a user wrote may raise anything
        return False
    if not isinstance(made, Tensor) or bool(raw.isinf().any()) != (tried.meaning == "additive"):
        return False
    wanted = COMPONENTS[component](
        Setting(), *(to_array(one) if isinstance(one, Tensor) else one for one in inputs)
    )
    return bool(np.array_equal(to_array(made), wanted))
