"""Probing calls of a whole model: which conventions sound code with these masks would show."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attentest.results.text import summary_with_place
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.single import in_precision_of
from attentest_spec import Sizes

SOURCE_LENGTH, TARGET_LENGTH = 6, 4
_NOISE = 1e-9


@dataclass(frozen=True)
class Probe:
    """A model that was built at `sizes` in float64, and tokens to call it with.

    Lengths, batch, heads and vocabularies differ, so that shapes distinguish them. Where it is
    `doubled`, double precision is the default of torch while it is called; where it is `widened`,
    its code gets double precision whatever it asks for.
    """

    model: nn.Module
    sizes: Sizes
    doubled: bool = False
    widened: bool = False

    @property
    def tokens(self) -> tuple[Tensor, Tensor]:
        """Source (2, 6) and target (2, 4), no two tokens of a row alike, and no padding."""
        free = [n for n in range(1, 20) if n not in (self.sizes.source_pad, self.sizes.target_pad)]
        source = torch.tensor([free[:SOURCE_LENGTH], free[3 : 3 + SOURCE_LENGTH]])
        target = torch.tensor([free[5 : 5 + TARGET_LENGTH], free[1 : 1 + TARGET_LENGTH]])
        return source, target

    def called(self, call: Callable[..., Any], *inputs: Tensor) -> Any:
        """Return what `call` gives, or in a sentence why it gives nothing."""
        try:
            precision = in_precision_of(doubled=self.doubled, widened_too=self.widened)
            with undisturbed(), precision:
                return call(self.model, *(one.clone() for one in inputs))
        except Exception as failure:  # code that a user wrote may raise anything
            return summary_with_place(failure)

    def output(self, call: Callable[..., Any], source: Tensor, target: Tensor) -> Tensor | None:
        """Return the output, None where there is none of the shape of the contract."""
        found = self.called(call, source, target)
        shape = (*target.shape, self.sizes.target_vocabulary)
        return found if isinstance(found, Tensor) and tuple(found.shape) == shape else None


def separates_samples(probe: Probe, call: Callable[..., Any]) -> bool:
    """Say whether the tokens of one sample leave the output of the other as it is."""
    source, target = probe.tokens
    before = probe.output(call, source, target)
    source[1], target[1] = source[1].flip(0), target[1].flip(0)
    after = probe.output(call, source, target)
    return before is not None and after is not None and _same(before[0], after[0])


def shown(probe: Probe, call: Callable[..., Any], *, ends: bool = False) -> Iterator[bool]:
    """Yield for each property of a right mask whether the model shows it under `call`.

    In this order: later targets are hidden, and earlier ones are not; the padding of the source is
    hidden, and its other tokens are not; the padding of the target is hidden. `call` takes the pad
    ids from the attribute `pads` of the model, or the model knows them. `ends` says that padding of
    the target is at its end.
    """
    source, target = probe.tokens
    whole = probe.output(call, source, target)
    if whole is None:
        yield from (False,) * 5
        return
    moved = target.clone()
    moved[:, 2] = target[:, 2].flip(0)
    other = probe.output(call, source, moved)
    yield other is not None and _same(whole[:, :2], other[:, :2])
    yield other is not None and not _same(whole[:, 2:], other[:, 2:], every=True)
    padded = source.clone()
    padded[:, -2:] = probe.sizes.source_pad
    yield _agree(
        probe.output(call, padded, target), probe.output(call, source[:, :-2], target), slice(None)
    )
    changed = source.clone()
    changed[:, 1] = source[:, 1].flip(0)
    other = probe.output(call, changed, target)
    yield other is not None and not _same(whole, other, every=True)
    yield _hides_target_padding(probe, call, -1 if ends else 1)


def hides_by_mask(probe: Probe, call: Callable[..., Any]) -> bool:
    """Say whether the mask that `call` gives hides tokens that no id in the model is that of."""
    source, target = (one[:1] for one in probe.tokens)
    model: Any = probe.model
    pads = model.pads
    short = probe.output(call, source[:, :-1], target)
    model.pads = int(source[0, -1]), pads[1]
    hidden = probe.output(call, source, target)
    model.pads = pads
    return _agree(short, hidden, slice(None))


def hides_filling(probe: Probe, call: Callable[..., Any]) -> bool:
    """Say whether other numbers in the rows of both ids of padding change no row of the output.

    `call` fills sequences without padding up to the greatest length.
    """
    before = probe.output(call, *probe.tokens)
    pads = sorted({probe.sizes.source_pad, probe.sizes.target_pad})
    tables = [one for one in _tables(probe) if pads[-1] < len(one) < probe.sizes.max_length]
    with torch.no_grad():
        kept = [one[pads].clone() for one in tables]
        for one in tables:
            one[pads] += torch.linspace(-1, 2, one.shape[1], dtype=one.dtype).square()
        after = probe.output(call, *probe.tokens)
        for one, rows in zip(tables, kept, strict=True):
            one[pads] = rows
    if not tables or before is None or after is None:
        return False
    free = [one for one in range(before.shape[-1]) if one not in pads]
    first = free[:1]
    return _same(before[..., free] - before[..., first], after[..., free] - after[..., first])


def _hides_target_padding(probe: Probe, call: Callable[..., Any], place: int) -> bool:
    """Say whether numbers in the row of the target's pad id reach no step that is no padding."""
    source, target = probe.tokens
    pad = probe.sizes.target_pad
    target[:, place] = pad
    before = probe.output(call, source, target)
    tables = [one for one in _tables(probe) if len(one) > pad]
    with torch.no_grad():
        kept = [one[pad].clone() for one in tables]
        for one in tables:  # a norm takes away what is the same everywhere in a row
            is_of_tokens = len(one) < probe.sizes.max_length
            one[pad] += torch.linspace(-1, 2, one.shape[1]).square() if is_of_tokens else 1.0
        after = probe.output(call, source, target)
        for one, row in zip(tables, kept, strict=True):
            one[pad] = row
    if before is None or after is None:
        return False
    steps = [step for step in range(TARGET_LENGTH) if step != place % TARGET_LENGTH]
    return _same(_contrasts(before, pad)[:, steps], _contrasts(after, pad)[:, steps])


def sides_padded_at_the_end(probe: Probe, call: Callable[..., Any]) -> tuple[str, ...]:
    """Return the sides whose padding is hidden behind the first token, and not in its place.

    So it is where a mask of all rows is made of the first one, as in `mask[:, 0]`.
    """
    if not _hides_pads_at(probe, call, 1, -1):
        return ()
    places = {"source": (0, -1), "target": (1, 0)}
    return tuple(side for side, both in places.items() if not _hides_pads_at(probe, call, *both))


def _hides_pads_at(probe: Probe, call: Callable[..., Any], first: int, second: int) -> bool:
    """Say whether numbers in the rows of padding reach no step that is none.

    It is at the place `first` of the source and at its end, and at the place `second` of the
    target.
    """
    source, target = probe.tokens
    pads = sorted({probe.sizes.source_pad, probe.sizes.target_pad})
    source[:, [first, -1]] = probe.sizes.source_pad
    target[:, second] = probe.sizes.target_pad
    before = probe.output(call, source, target)
    tables = [one for one in _tables(probe) if pads[-1] < len(one) < probe.sizes.max_length]
    with torch.no_grad():
        kept = [one[pads].clone() for one in tables]
        for one in tables:
            one[pads] += torch.linspace(-1, 2, one.shape[1], dtype=one.dtype).square()
        after = probe.output(call, source, target)
        for one, rows in zip(tables, kept, strict=True):
            one[pads] = rows
    if not tables or before is None or after is None:
        return False
    if not (before.isfinite().all() and after.isfinite().all()):
        return True  # a row that hides all its keys may be NaN, which shows nothing
    steps = [step for step in range(TARGET_LENGTH) if step != second % TARGET_LENGTH]
    free = [one for one in range(before.shape[-1]) if one not in pads]
    plain, moved = ((one[..., free] - one[..., free[:1]])[:, steps] for one in (before, after))
    return _same(plain, moved)


def _tables(probe: Probe) -> list[Tensor]:
    """Return the tables of tokens and of positions; these have more rows than the others.

    A table of tokens may be a parameter without a module of its own.
    """
    modules = list(probe.model.modules())
    rows = {probe.sizes.source_vocabulary, probe.sizes.target_vocabulary}
    bare = [
        own
        for one in modules
        if not isinstance(one, nn.Embedding | nn.Linear)
        for own in one.parameters(recurse=False)
        if own.ndim == 2 and len(own) in rows
    ]
    return [*(one.weight for one in modules if isinstance(one, nn.Embedding)), *bare]


def takes_pads_for_tokens(probe: Probe, call: Callable[..., Any], side: str) -> bool:
    """Say whether padding between tokens of a side is a token like any other, and is not hidden.

    Another token with the numbers of the pad id gives the same output in its place then.
    """
    source, target = probe.tokens
    pad = probe.sizes.target_pad if side == "target" else probe.sizes.source_pad
    used = {pad, probe.sizes.source_pad, *target.flatten().tolist(), *source.flatten().tolist()}
    other = next(n for n in range(1, 20) if n not in used)
    own = target if side == "target" else source
    own[:, 1] = pad
    replaced = own.where(own != pad, other)
    in_place = (source, replaced) if side == "target" else (replaced, target)
    with torch.no_grad():
        tables = [one for one in _tables(probe) if len(one) > max(pad, other)]
        kept = [(one, one[other].clone()) for one in tables]
        for one, _ in kept:
            one[other] = one[pad]
        answers = [probe.output(call, *tokens) for tokens in ((source, target), in_place)]
        for one, row in kept:
            one[other] = row
    first, second = answers
    return first is not None and second is not None and _same(first, second)


def is_not_finite(probe: Probe, call: Callable[..., Any]) -> bool:
    """Say whether tokens without padding give NaN or infinity."""
    found = probe.output(call, *probe.tokens)
    return found is not None and not bool(found.isfinite().all())


def hides_tokens(probe: Probe, call: Callable[..., Any]) -> bool:
    """Say whether no token of the source changes anything where there is padding, and does else."""
    source, target = probe.tokens
    padded = source.clone()
    padded[:, -2:] = probe.sizes.source_pad
    return _are_unseen(probe, call, padded, target) and not ignores_source(probe, call)


def ignores_source(probe: Probe, call: Callable[..., Any]) -> bool:
    """Say whether no token of a source without padding changes anything."""
    return _are_unseen(probe, call, *probe.tokens)


def _are_unseen(probe: Probe, call: Callable[..., Any], source: Tensor, target: Tensor) -> bool:
    """Say whether the output is the same with other tokens in the first columns of `source`."""
    changed = source.clone()
    changed[:, :-2] = source[:, :-2].flip(0)
    before, after = (probe.output(call, one, target) for one in (source, changed))
    return _agree(before, after, slice(None))


def _contrasts(output: Tensor, pad: int) -> Tensor:
    """Return what does not depend on the generator's row of `pad`: differences of log-odds."""
    positive = bool((output >= 0).all()) and bool((output.sum(-1) - 1).abs().max() < 1e-6)
    logits = output.log() if positive else output
    rest = [n for n in range(output.shape[-1]) if n != pad]
    return logits[..., rest] - logits[..., rest[:1]]


def _same(one: Tensor, other: Tensor, *, every: bool = False) -> bool:
    """Say whether two outputs agree; with `every`, whether any of their rows does."""
    if one.shape != other.shape:
        return False
    near = ((one - other).abs() <= _NOISE).all(-1)
    return bool(near.any()) if every else bool(near.all())


def _agree(one: Tensor | None, other: Tensor | None, rows: slice) -> bool:
    return one is not None and other is not None and _same(one[:, rows], other[:, rows])


def fixed_pads(model: nn.Module) -> list[int]:
    """Return the ids that may be that of padding in the code of `model`, the likeliest first."""
    tables = [one for one in model.modules() if isinstance(one, nn.Embedding)]
    return list(dict.fromkeys([*(n for one in tables if (n := one.padding_idx)), 0, 1, 2, 3]))


def untrained_rows(model: nn.Module) -> list[int]:
    """Return the ids whose rows the tables of `model` never train, as those of padding."""
    tables = [one for one in model.modules() if isinstance(one, nn.Embedding)]
    return sorted({n for one in tables if (n := one.padding_idx) is not None})
