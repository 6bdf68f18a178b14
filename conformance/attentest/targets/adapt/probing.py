"""Probing calls: what tells a convention where words say nothing.

Only what sound code with a convention would show is taken for it.
"""

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from attentest.harness.subject import Answer
from attentest.results.text import summary, summary_with_place
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.layouts import NUMBERS, layouts
from attentest.targets.adapt.masks import STYLES, Style, masks_of_lengths
from attentest.targets.adapt.results import Returns, ignores_numbers, returns, rows_of, table
from attentest_spec import COMPONENTS, Sizes

SIZES = Sizes(
    d_model=12,
    heads=3,
    d_ff=11,
    source_vocabulary=13,
    target_vocabulary=17,
    max_length=32,
    window=48,  # none ends within a text
)
_BATCH, QUERIES, _KEYS = 2, 5, 7
HIDDEN = 1
"""The key that a probing mask hides, from every query of every sample."""
_LARGE, _SLIGHT = -1e4, -1e-3
"""Finite entries of an additive mask: one hides a key, whatever its score, the other hides none."""

SEQUENCES = ("multi_head_attention", "encoder_layer", "encoder")
"""Components in which one input alone can show which axis is the sequence."""

_CROSS = ("attention", "multi_head_attention")
"""Components whose one mask says which keys of another sequence may be attended."""

Given = Mapping[str, Any]

MISSING: list[ImportError] = []
"""The failed imports of code that was built or called while it was probed, the first one first."""


@contextmanager
def undisturbed() -> Iterator[None]:
    """Keep the random state, record no gradient, show no warning; remember failed imports."""
    with torch.random.fork_rng(devices=[]), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except ImportError as failure:
            MISSING.append(failure)
            raise


def inputs(
    component: str, keys: int, dtype: torch.dtype, *, joined: bool = False, batch: int = _BATCH
) -> Given:
    """Return inputs of `component` without masks; `joined` ones are of one length."""
    source = torch.Generator().manual_seed(0)

    def floats(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=source, dtype=torch.float64).to(dtype)

    def tokens(vocabulary: int) -> Tensor:
        return torch.randint(1, vocabulary, (batch, QUERIES), generator=source)

    lead = (batch, SIZES.heads) if component == "attention" else (batch,)
    width = SIZES.d_model // SIZES.heads if component == "attention" else SIZES.d_model
    queries = width + 1 if component == "positional_encoding" else QUERIES  # axes do not swap
    query = floats(*lead, queries, width)
    kinds: dict[str, Callable[[], Any]] = {
        "query": lambda: query,
        "key": lambda: query if joined else floats(*lead, keys, width),
        "value": lambda: query if joined else floats(*lead, keys, width),
        "x": lambda: query,
        "memory": lambda: floats(*lead, queries if joined else keys, width),
        "tokens": lambda: tokens(SIZES.source_vocabulary),
        "source": lambda: tokens(SIZES.source_vocabulary),
        "target": lambda: tokens(SIZES.target_vocabulary),
        "sublayer": lambda: floats(width, width),
        "pad": lambda: 0,
        "length": lambda: queries,
    }
    return {name: kinds[name]() if name in kinds else None for name in COMPONENTS[component].inputs}


@dataclass(frozen=True)
class Probe:
    """The object built for probing, the precision it computes in, and the number of samples."""

    built: Any
    dtype: torch.dtype = torch.float64
    batch: int = _BATCH

    def given(self, adapter: Adapter, *, keys: int = _KEYS, joined: bool = False) -> Given:
        """Return inputs for `adapter`, of one length where some are one argument, or `joined`."""
        joined = joined or bool(adapter.arguments.joined)
        return inputs(adapter.component, keys, self.dtype, joined=joined, batch=self.batch)

    def called(self, adapter: Adapter, given: Given) -> Tensor | str:
        """Return the output for `given`, or in a sentence why there is none."""
        try:
            with undisturbed():
                result = adapter(self.built, *given.values())
        except Exception as failure:  # code that a user wrote may raise anything
            return summary(failure, 120)
        output = Answer.of(result).output
        return output if isinstance(output, Tensor) else f"it returned a {type(output).__name__}"

    def returned(self, adapter: Adapter, given: Given) -> Returns | str:
        """Return where the output stands in the result for `given`, or why it does not."""
        try:
            with undisturbed():
                result = adapter.results(self.built, given)[0]
        except Exception as failure:
            return summary_with_place(failure)
        output, weights = _shapes(adapter, given)
        numbers = adapter.layout.fold in NUMBERS
        found = None if numbers else returns(result, output, weights)
        if found is None and adapter.component == "positional_encoding":
            found = table(result, output, adapter.layout)
        if found is None and numbers:
            found = self._rows(adapter, result, output)
        return found or f"its result holds no tensor of shape {output}"

    def _rows(self, adapter: Adapter, result: Any, output: tuple[int, ...]) -> Returns | None:
        """Return the place of rows for positions, or for numbers (B, L) that change nothing."""

        def rows(numbers: Tensor) -> Any:
            with undisturbed():
                return adapter.call(self.built, {adapter.arguments.roles["x"]: numbers})

        named = adapter.layout.fold != "ids"
        return rows_of(result, output) if named or ignores_numbers(rows, output[:2]) else None


def _shapes(adapter: Adapter, given: Given) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes that output and weights have in the layout of `adapter`."""
    like = next(value for value in given.values() if isinstance(value, Tensor))
    shape = (*like.shape, SIZES.d_model) if like.ndim == 2 else tuple(like.shape)
    if adapter.component in ("generator", "model"):
        shape = (*shape[:-1], SIZES.target_vocabulary)
    if adapter.layout.fold in NUMBERS:
        return shape, ()
    output = adapter.layout.enter(torch.empty(shape))[0]
    if adapter.component != "attention":
        return tuple(output.shape), ()
    rows = torch.empty((*shape[:-1], given["key"].shape[-2]))
    return tuple(output.shape), tuple(adapter.layout.split(rows)[0].shape)


def with_layout(
    probe: Probe, adapter: Adapter, only: str, given: Given
) -> tuple[Adapter, list[str]]:
    """Return `adapter` in the first layout that fits, or as it is, and why others do not.

    `only` is "batch-first" or "sequence-first" where words say it.
    """
    refusals = []
    first = next(iter(adapter.arguments.roles.values()), "")
    for layout in layouts(adapter.component, first):
        if only and (layout.swap == (0, 1)) != (only == "sequence-first"):
            continue
        tried = replace(adapter, layout=layout)
        found = probe.returned(tried, given)
        if layout.column is not None and isinstance(found, Returns):  # 1 hides what is averaged
            found = probe.returned(replace(tried, layout=replace(layout, columns=2)), given)
        if isinstance(found, Returns):
            return replace(tried, returns=found), []
        refusals.append(f"{layout.words}: {found}")
    return adapter, refusals


def swaps_batch(probe: Probe, adapter: Adapter) -> bool:
    """Say whether one input shows that the sequence comes first: a move stays in its column.

    What stays in its row and reaches no other sample says batch first, all else says nothing.
    """
    given = probe.given(adapter)
    role = next(name for name, value in given.items() if isinstance(value, Tensor))
    before, moved = probe.called(adapter, given), given[role].clone()
    moved[0, 0] = moved[0, 0].flip(-1) + 1.0 if moved.is_floating_point() else moved[0, 0]
    after = probe.called(adapter, _moved(given, role, moved))
    if isinstance(before, str) or isinstance(after, str) or before.shape[:2] != moved.shape[:2]:
        return False
    changed = (before != after).flatten(2).any(-1)
    return bool(changed[:, 0].all()) and not bool(changed[:, 1:].any())


def _moved(given: Given, role: str, value: Tensor) -> Given:
    """Return `given` with another value for `role`, and for every input that is the same one."""
    return {name: value if one is given[role] else one for name, one in given.items()}


def is_causal(
    probe: Probe, adapter: Adapter, *, joined: bool = False, masked: bool = False
) -> bool:
    """Say whether an input without a mask reaches its own row and later ones alone.

    `joined` makes all of one length, as code may demand; `masked` gives a mask that hides nothing.
    """
    reached = _reached_rows(probe, adapter, joined=joined, masked=masked)
    if reached is None:
        return not joined and is_causal(probe, adapter, joined=True, masked=masked)
    wanted = torch.arange(reached.shape[-1])[None, :] >= torch.arange(reached.shape[-1])[:, None]
    return bool((reached.flatten(1, -2) == wanted[:, None]).all())


def sees_all(probe: Probe, adapter: Adapter) -> bool:
    """Say whether each row of an input reaches all rows under a mask that hides nothing."""
    found = _reached_rows(probe, adapter, joined=True, masked=True)
    return found is not None and bool(found.all())


def _reached_rows(probe: Probe, adapter: Adapter, *, joined: bool, masked: bool) -> Tensor | None:
    """Return which rows each position of the input reaches; None where a call fails."""
    given = probe.given(adapter, joined=joined)
    role = "query" if "query" in given else "x"
    rows = given[role].shape[-2]
    keep = {"mask": torch.ones((1, 1, rows, rows), dtype=torch.bool)} if masked else {}
    return _reached(probe, adapter, given, {**given, **keep}, role)


def _reached(probe: Probe, adapter: Adapter, given: Given, base: Given, role: str) -> Tensor | None:
    """Return which rows the positions of `role` reach: (positions, .., rows); None if it fails."""
    moved = changes(probe, adapter, given, base, role)
    return None if moved is None else ~(moved <= 1e-9)  # NaN is a change


def changes(probe: Probe, adapter: Adapter, given: Given, base: Given, role: str) -> Tensor | None:
    """Return how much each row changes with each position of `role`; None where a call fails."""
    before = probe.called(adapter, base)
    source = torch.Generator().manual_seed(1)
    found = []
    for place in range(given[role].shape[-2]):
        moved = given[role].clone()
        step = torch.randn(moved[..., place, :].shape, generator=source, dtype=torch.float64)
        moved[..., place, :] += step.to(moved.dtype)
        after = probe.called(adapter, {**_moved(given, role, moved), **_masks_of(base)})
        if isinstance(before, str) or isinstance(after, str) or before.shape != after.shape:
            return None
        found.append((before - after).abs().amax(-1))
    return torch.stack(found)


def _masks_of(given: Given) -> Given:
    return {name: value for name, value in given.items() if name.endswith("mask")}


def carrier(role: str, given: Given) -> str:
    """Return the input whose positions the mask `role` hides."""
    hidden = {"mask": "value", "source_mask": "memory", "target_mask": "x"}[role]
    return hidden if hidden in given else "x"


def mask_shows(
    probe: Probe,
    adapter: Adapter,
    role: str,
    keep: Tensor,
    *,
    keys: int,
    shown: Tensor | None = None,
) -> bool:
    """Say whether `adapter` hides the keys that `keep` (B, H, Q, K) hides, or `shown`, alone."""
    given = probe.given(adapter, keys=keys)
    moved = carrier(role, given)
    reached = _reached(probe, adapter, given, {**given, role: keep}, moved)
    if reached is None:
        return False
    wanted = keep if shown is None else shown
    wanted = (wanted if reached.ndim == 4 else wanted[:, 0]).movedim(-1, 0).expand_as(reached)
    if not any(given[moved] is value for name, value in given.items() if name in ("query", "x")):
        return bool((reached == wanted).all())
    own = torch.eye(len(reached), dtype=torch.bool)  # a position is a query of its own, too
    own = own.view(len(reached), *[1] * (reached.ndim - 2), -1).expand_as(reached)
    if bool(((reached == wanted) | own).all()):
        return True
    free = _reached(probe, adapter, given, given, moved)
    if free is None or not bool((free == own.cumsum(-1).bool()).all()):
        return False
    return bool(((reached == wanted & free) | own).all())  # it hides later positions by itself


def masks_for(style: Style, probe: Probe, adapter: Adapter, keys: int) -> Sequence[Tensor]:
    """Return masks that hide one key from all queries, in the shapes that `style` must take.

    Lengths hide the last keys, of each sample another number.
    """
    if style.meaning == "lengths":
        several = style.shape == "lengths per query" and adapter.component in _CROSS
        return [masks_of_lengths(probe.batch, keys, QUERIES if several else 1)]
    lead = (1, 1) if style.shape == "per pair" else (probe.batch, 1)
    narrow = torch.ones((*lead, 1, keys), dtype=torch.bool)
    narrow[..., HIDDEN] = False
    queries = probe.given(adapter, keys=keys)
    rows = next(value for value in queries.values() if isinstance(value, Tensor)).shape[-2]
    heads = SIZES.heads if style.shape in ("broadcast", "full") else 1
    wide = narrow.expand(len(narrow), heads, rows, -1).clone()
    shared = wide[:, :1]  # by all heads
    by_shape = {"broadcast": [narrow, shared, wide], "full": [shared, wide], "per key": [narrow]}
    return by_shape.get(style.shape, [wide])


def keys_of(adapter: Adapter, role: str, keys: int) -> int:
    """Return how many keys the mask of `role` has, where a memory has `keys` positions."""
    keys = keys if role == "source_mask" or adapter.component in _CROSS else QUERIES
    return QUERIES if adapter.arguments.joined else keys


def style_shown(
    probe: Probe,
    adapter: Adapter,
    role: str,
    meanings: Collection[str],
    keys: int,
    shapes: Collection[str] = (),
) -> tuple[Style | None, Style | None]:
    """Return the first style that a mask shows, and the first that is accepted at all.

    `meanings` and `shapes` narrow the styles to those that words allow, all where they are empty.
    A style whose open mask changes the output comes last: its rows may be those of others.
    """
    accepted = changing = None
    asked = "mask" if role == "padding" else role
    keys = keys_of(adapter, role, keys)
    for style in STYLES:
        if (meanings and style.meaning not in meanings) or not _fits(style, adapter, role):
            continue
        if shapes and style.shape not in shapes:
            continue
        tried = replace(adapter, styles={**adapter.styles, role: style})
        masks = masks_for(style, probe, tried, keys)
        if adapter.arguments.padding and role == "mask":  # a narrow one goes to that of padding
            masks = [one for one in masks if one.shape[-2] > 1] or masks[-1:]
        given = probe.given(tried, keys=keys)
        answers = [probe.called(tried, {**given, asked: keep}) for keep in masks]
        if any(isinstance(answer, str) for answer in answers) or not _right(tried, given, answers):
            continue
        accepted = accepted or style
        if all(mask_shows(probe, tried, asked, keep, keys=keys) for keep in masks) and all(
            _is_added(probe, tried, role, keep, keys=keys) for keep in masks
        ):
            if _leaves_open(probe, tried, {**given, asked: torch.ones_like(masks[-1])}, asked):
                return style, accepted
            changing = changing or style
    return changing, accepted


def _leaves_open(probe: Probe, adapter: Adapter, given: Given, asked: str) -> bool:
    """Say whether a mask that hides nothing gives what a call without it does, if one answers."""
    bare = probe.called(adapter, {**given, asked: None})
    answer = probe.called(adapter, given)
    if isinstance(bare, str) or isinstance(answer, str):
        return True
    return bare.shape == answer.shape and bool(((bare - answer).abs() <= 1e-9).all())


def _is_added(probe: Probe, adapter: Adapter, role: str, keep: Tensor, *, keys: int) -> bool:
    """Say whether a mask that hides by minus infinity is added; True for other styles.

    (1 - mask) * -1e-9 hides by minus infinity alone, and code that looks for that does not change
    at all with a finite entry. Code that hides where the mask is not 0 does so by a slight one.
    """
    style, asked = adapter.styles[role], "mask" if role == "padding" else role
    if style.meaning != "additive":
        return True
    others = (replace(style, fill=fill) for fill in (_LARGE, _SLIGHT))
    finite, slight = (replace(adapter, styles={**adapter.styles, role: one}) for one in others)
    if mask_shows(probe, finite, asked, keep, keys=keys):
        return not mask_shows(probe, slight, asked, keep, keys=keys)
    given = probe.given(finite, keys=keys)
    masked, bare = (
        probe.called(finite, {**given, asked: one}) for one in (keep, torch.ones_like(keep))
    )
    return isinstance(masked, Tensor) and isinstance(bare, Tensor) and torch.equal(masked, bare)


def _fits(style: Style, adapter: Adapter, role: str) -> bool:
    """Say whether a mask in the place of `role` can be of this style at all."""
    if role == "padding":
        return style.shape == "per key"
    if adapter.arguments.padding and style.shape == "per key":
        return False
    if style.meaning == "lengths":
        return adapter.layout.fold != "alone"
    # Where the heads are gone there is nothing to broadcast over: it is written out.
    return style.shape != "broadcast" or adapter.layout.fold == "whole"


def _right(adapter: Adapter, given: Given, answers: Sequence[Any]) -> bool:
    like = next(value for value in given.values() if isinstance(value, Tensor))
    return all(answer.shape == like.shape for answer in answers)
