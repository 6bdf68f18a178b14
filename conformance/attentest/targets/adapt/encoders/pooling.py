"""The output of a class behind its layers: it is not judged, and may change with padding."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.encoders.seen import Seen
from attentest.targets.adapt.encoders.wrapping import BATCH, LENGTH, Wrapping
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Unclear

UNJUDGED = "not judged: what {} makes of the output of its layers"
PADDED = "which changes with padding"
PADS_COUNTED = (
    f"{UNJUDGED}, {PADDED} that they hide: a mean or a last row that counts padding is a mistake"
)


_SCORES = (
    "scores of every id for each token, which depend on later tokens: a mistake if it continues "
    "texts"
)


def without_padding(sentence: str) -> str:
    """Return `sentence` without what is said of padding: layers that hide the tokens show none."""
    return sentence.partition(f", {PADDED}")[0] if PADDED in sentence else sentence


_MORE = 3
"""The padding tokens that are added."""
_SAME, _OTHER = 1e-6, 1e-4
"""Relative differences: at most the first where nothing changes, at least the second otherwise."""


@dataclass(frozen=True)
class _Answer:
    """The first array that a call returns, and what its last layer returned, (B, L, D)."""

    output: Tensor
    states: Tensor

    def agrees(self, shorter: "_Answer") -> bool:
        """Say whether the layers give the tokens of a shorter text the same rows."""
        rows = self.states[:, : shorter.states.shape[1]]
        return _difference(shorter.states, rows) <= _SAME


def pooling_of(wrapping: Wrapping, pad: int, *, heads: bool = True) -> str:
    """Return what is said of what a class makes of the output of its layers.

    `wrapping` is all of the class. Padding is said to change its output only where the layers hide
    it, and where the output has the same shape with more of it. Nothing is said of a class without
    `heads` that returns a row for each token: its numbers are compared.
    """
    said = UNJUDGED.format(wrapping.name)
    try:
        with undisturbed():
            _randomise(wrapping.module)
            if not heads and not _pools(wrapping, pad):
                return ""
            if _scores_by_later(wrapping, pad):
                return f"{said}, {_SCORES}"
            return PADS_COUNTED.format(wrapping.name) if _counts(wrapping, pad) else said
    except Unclear:  # nothing says what to give for its other arguments
        return said


def _pools(wrapping: Wrapping, pad: int) -> bool:
    """Say whether the output has another shape than what the last layer returns."""
    ids = _ids(wrapping.sizes.source_vocabulary, pad)
    answers = (_answer(wrapping, one) for one in _calls(wrapping, ids, LENGTH))
    seen = next((one for one in answers if one is not None), None)
    return seen is not None and {*seen.output.shape[:2]} != {*seen.states.shape[:2]}


def _scores_by_later(wrapping: Wrapping, pad: int) -> bool:
    """Say whether the output is a score of each id, for each token, that later tokens change."""
    ids = _ids(wrapping.sizes.source_vocabulary, pad)
    moved = ids.clone()
    moved[:, -1] = ids[:, 0]
    calls = zip(*(_calls(wrapping, one, LENGTH) for one in (ids, moved)), strict=True)
    pairs = ([_answer(wrapping, one) for one in both] for both in calls)
    known = ((one, other) for one, other in pairs if one is not None and other is not None)
    one, other = next(known, (None, None))
    if one is None or other is None or one.output.shape != other.output.shape:
        return False
    whole = one.output.shape == (BATCH, LENGTH, wrapping.sizes.source_vocabulary)
    return whole and _difference(one.output[:, :1], other.output[:, :1]) >= _OTHER


def _counts(wrapping: Wrapping, pad: int) -> bool:
    """Say whether padding that the layers hide changes the output, under one form of mask."""
    ids = _ids(wrapping.sizes.source_vocabulary, pad)
    padding = torch.full((BATCH, _MORE), pad)
    padded, filled = (torch.cat([ids, one], dim=1) for one in (padding, ids[:, :_MORE]))
    calls = (
        _calls(wrapping, ids, LENGTH),
        _calls(wrapping, padded, LENGTH),
        _calls(wrapping, filled, LENGTH + _MORE),
    )
    for plain, longer, seen in zip(*calls, strict=True):
        answers = [_answer(wrapping, one) for one in (plain, longer, seen, plain)]
        if None not in answers:
            short, hidden, shown, again = (one for one in answers if one is not None)
            if hidden.agrees(short) and not shown.agrees(short):
                same = torch.equal(short.output, again.output)
                return same and _OTHER <= _difference(short.output, hidden.output) < torch.inf
    return False


def _randomise(module: nn.Module) -> None:
    source = torch.Generator().manual_seed(0)
    for one in module.parameters():
        if one.is_floating_point():
            one.data.copy_(0.3 * torch.randn(one.shape, generator=source, dtype=torch.float64))


def _ids(vocabulary: int, pad: int) -> Tensor:
    """Return ids (B, L) that are not the padding, nor one of the first or last ones."""
    every = torch.tensor([one for one in range(3, vocabulary - 3) if one != pad])
    source = torch.Generator().manual_seed(1)
    return every[torch.randint(len(every), (BATCH, LENGTH), generator=source)]


def _answer(wrapping: Wrapping, given: Mapping[str, Any]) -> _Answer | None:
    """Return the answer to a call, None for one that is not accepted."""
    seen = Seen(wrapping.module, wrapping.layers)
    try:
        with seen:
            result = wrapping.module(**given)
    except Exception:  # code that a user wrote may raise anything
        return None
    arrays = [one for one in _leaves(result) if one.is_floating_point()]
    states = seen.output
    if not arrays or not isinstance(states, Tensor) or states.ndim != 3:
        return None
    batch_first = states if states.shape[0] == BATCH else states.transpose(0, 1)
    return _Answer(arrays[0].double(), batch_first.double())


def _leaves(result: Any) -> Iterator[Tensor]:
    """Yield the tensors of a result: of a tuple, a dictionary, or an object that holds them."""
    held = (
        vars(result) if hasattr(result, "__dict__") and not isinstance(result, Tensor) else result
    )
    return (one for one in tree_leaves(held) if isinstance(one, Tensor))


def _calls(wrapping: Wrapping, ids: Tensor, tokens: int) -> Iterator[Mapping[str, Any]]:
    """Yield the arguments of calls that hide the ids behind the first `tokens`, in every form.

    The last call has no mask. A mask that is named after padding is the one that hides it.
    """
    masks = [one for one in wrapping.parameters if "mask" in squashed(one)]
    masks = [one for one in masks if "pad" in squashed(one)] or masks
    given = next(wrapping.calls(ids))
    keys = torch.arange(ids.shape[1]).expand(ids.shape) < tokens
    for mask in _forms(keys) if masks else ():
        yield {**given, **dict.fromkeys(masks, mask)}
    yield {name: one for name, one in given.items() if name not in masks}


def _forms(keys: Tensor) -> Iterator[Tensor]:
    """Yield masks of the keys (B, L) that are True at tokens, in the usual forms and meanings."""
    every = keys[:, None] & torch.ones(keys.shape[1], 1, dtype=torch.bool)
    for mask in (keys, keys[:, None, None], every, every[:, None]):
        yield mask
        yield mask.double()
        yield mask.long()
        yield ~mask
        yield torch.zeros_like(mask, dtype=torch.float64).masked_fill(~mask, -torch.inf)


def _difference(one: Tensor, other: Tensor) -> float:
    """Return the largest difference of two arrays, as a part of the largest number of the first."""
    if one.shape != other.shape or not (one.isfinite().all() and other.isfinite().all()):
        return torch.inf
    return float((one - other).abs().max() / one.abs().max().clamp(min=1e-300))
