"""Uses of a mask beside the layers of a class, which show what its author means by an entry.

A mean over tokens that counts those at 1, ones in the place of a mask that is not given, and
numbers that are added to scores, of which 1 becomes 0, say that 1 marks a token. Layers that hide
it all the same have the mask inverted.
"""

import inspect
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from attentest.targets.adapt import probing
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.assumptions.choices import summary
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.encoders.inverted import read_upright
from attentest.targets.adapt.encoders.pooling import without_padding
from attentest.targets.adapt.encoders.stack import EmbeddedStack, replaced
from attentest.targets.adapt.masks import Style
from attentest.targets.adapt.probing import Given, Probe
from attentest.targets.adapt.reading import Contrary, Misused, Reading, Unclear
from attentest_spec import Sizes

Read = TypeVar("Read", bound=Any)

MISUSED = (
    "the {} of {} {}, by its name and by all that is made of it beside the layers, and these use "
    "it as the contrary: with that they have the numbers of the reference"
)
_MEANS = {"keep": "says what may be attended", "blocks": "says what is hidden"}


def read_around(
    question: Unclear, stack: Code | None, reading: Reading, read: Callable[[Code, Reading], Read]
) -> Read | None:
    """Return an encoder whose mask is inverted, as `read` has it if it were not; None for others.

    Raises Unclear for one whose numbers are wrong all the same.
    """
    if stack is not None and isinstance(question, Misused):
        with probing.undisturbed():
            return _read_as_meant(question, stack, reading, read)
    return read_upright(stack, reading, read)


def _read_as_meant(
    question: Misused, code: Code, reading: Reading, read: Callable[[Code, Reading], Read]
) -> Read | None:
    """Return code whose mask is used as the contrary of what it is, called with what it is.

    It is read as `read` has it if its mask were the contrary, and always given. None where its
    numbers are wrong all the same.
    """
    if reading.strict or question.meant not in _OTHER:
        return None
    own = question.argument
    mask = ",".join(filter(None, [reading.mask, f"{own}:{question.used}"]))
    try:
        made = read(_without_default(code, own), replace(reading, mask=mask))
    except Unclear:
        return None
    if not made.fits:
        return None
    recipe = made.recipes[code.component]
    adapter = _as_meant(recipe.call, own, question.meant)
    sentence = MISUSED.format(own, code.name, _MEANS[question.meant])

    def known(sentences: tuple[str, ...]) -> list[str]:
        return [without_padding(one) for one in sentences if not one.startswith(f"{own}: ")]

    return replace(
        made,
        recipes={code.component: replace(recipe, build=code.build, call=adapter)},
        code=code,
        limits=replace(made.limits, masks=_given(adapter, made.limits.masks)),
        fits=False,
        assumed=(sentence, *known(made.assumed)),
        understood=(made.understood[0], sentence, *known(made.understood[1:])),
        summary=summary(code, adapter, recipe.parameters),
    )


def _without_default(code: Code, own: str) -> Code:
    """Return `code` whose mask `own` has to be given: its default may hide all."""
    required = [
        one.replace(default=inspect.Parameter.empty, kind=inspect.Parameter.KEYWORD_ONLY)
        if one.name == own
        else one
        for one in code.signature.parameters.values()
    ]
    required.sort(key=lambda one: one.kind)

    def build(sizes: Sizes) -> Any:
        stack = code.build(sizes)
        stack.forward = partial(_masked, stack.forward, own)
        return stack

    return replace(code, build=build, signature=code.signature.replace(parameters=required))


def _masked(call: Callable[..., Any], own: str, *args: Any, **named: Any) -> Any:
    """Call a stack that has to be given the mask `own`."""
    if named.get(own) is None:
        raise TypeError(f"{own} is not given")
    return call(*args, **named)


def _given(adapter: Adapter, kinds: Collection[str]) -> tuple[str, ...]:
    """Return the `kinds` of masks without "none", where one of ones would be given for it."""
    return tuple(one for one in kinds if one != "none" or not adapter.needs_mask)


def _as_meant(adapter: Adapter, own: str, meant: str) -> Adapter:
    """Return `adapter` with entries of the mask `own` that mean what is `meant`."""
    slots = [slot for slot, one in adapter.arguments.roles.items() if one == own]
    slots += ["padding"] * (adapter.arguments.padding == own)
    styles = {slot: replace(adapter.styles[slot], meaning=meant) for slot in slots}
    return replace(adapter, styles={**adapter.styles, **styles})


def shows_otherwise(probe: Probe, adapter: Adapter, slot: str, style: Style, keys: int) -> bool:
    """Say whether the layers alone use a mask as one of `style`, and all other uses contradict it.

    `style` is what the layers show, "keep" or "blocks".
    """
    if style.meaning not in _OTHER:
        return False
    tried, given, asked = _tried(probe, adapter, slot, style, keys)
    wanted = _OTHER[style.meaning]
    uses = (_default, _counted, _added)
    every = [use(probe, tried, given, asked, style) for use in uses]
    return wanted in every and style.meaning not in every


def demand_counted(
    probe: Probe, adapter: Adapter, slot: str, style: Style, keys: int, own: str
) -> None:
    """Raise Contrary where a class pools the rows alone that its layers hide by the mask `own`.

    No name says what an entry of it means; `style` is what the layers show.
    """
    if style.meaning not in _OTHER or not isinstance(probe.built, EmbeddedStack):
        return
    tried, given, asked = _tried(probe, adapter, slot, style, keys)
    if _counted(probe, tried, given, asked, style) == _OTHER[style.meaning]:
        raise Contrary(
            f"Its layers use {own} as one that {_MEANS[style.meaning]}, and the rows that it hides "
            f"are those that count behind them: one of the two uses is a mistake. Say which one "
            f"is meant: --set mask=keep or --set mask=blocks (in Python: mask='keep')."
        )


def _tried(
    probe: Probe, adapter: Adapter, slot: str, style: Style, keys: int
) -> tuple[Adapter, Given, str]:
    """Return the adapter with a mask of `style`, what it gets, and the name of the mask in that."""
    asked = "mask" if slot == "padding" else slot
    tried = replace(adapter, styles={**adapter.styles, slot: style})
    keys = probing.keys_of(tried, slot, keys)
    keep = probing.masks_for(style, probe, tried, keys)[0]
    return tried, {**probe.given(tried, keys=keys), asked: keep}, asked


_OTHER = {"keep": "blocks", "blocks": "keep"}


def _default(probe: Probe, adapter: Adapter, given: Given, asked: str, style: Style) -> str:
    """Return what an entry means if a mask that is not given is one that keeps all, or hides all.

    "" where it is neither, or may be either. No number is the same as no number. That the layers
    get no mask then, and hide nothing, says nothing.
    """
    keep = given[asked]
    if adapter.needs_mask:
        return ""
    visible, hidden, none = (
        probe.called(adapter, {**given, asked: mask})
        for mask in (torch.ones_like(keep), torch.zeros_like(keep), None)
    )
    as_seen, as_hidden = (_is_equal(none, one) for one in (visible, hidden))
    if as_seen == as_hidden:
        return ""
    if as_hidden:
        return _OTHER[style.meaning]
    stack = probe.built
    handed = _handed(probe, adapter, {**given, asked: None}) if _is_stack(stack) else []
    return style.meaning if len({one.shape for one in handed}) != 1 else ""


def _is_equal(one: Tensor | str, other: Tensor | str) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return False
    return torch.equal(one.nan_to_num(nan=torch.inf), other.nan_to_num(nan=torch.inf))


def _counted(probe: Probe, adapter: Adapter, given: Given, asked: str, style: Style) -> str:
    """Return what an entry means to the class that pools the rows that its layers return.

    "" where the rows that are pooled are neither all that the mask keeps nor all the others.
    """
    stack, keep = probe.built, given[asked]
    if not isinstance(stack, EmbeddedStack) or keep.shape[1] != 1 or keep.shape[2] != 1:
        return ""
    kept = keep[:, 0, 0].expand(probe.batch, -1)
    with _around(stack):
        before = _pooled(probe, adapter, given, stack, None)
        rows = [_pooled(probe, adapter, given, stack, row) for row in range(kept.shape[1])]
    if before is None or any(one is None or one.shape != before.shape for one in rows):
        return ""
    counted = torch.stack([(one != before).any(-1) for one in rows if one is not None], dim=1)
    if torch.equal(counted, kept):
        return style.meaning
    return _OTHER[style.meaning] if torch.equal(counted, ~kept) else ""


def _added(probe: Probe, adapter: Adapter, given: Given, asked: str, style: Style) -> str:
    """Return what an entry means to a class that hands its layers numbers to be added to scores.

    Those are 0 where a key is kept, and very small elsewhere. "" where it hands on no such.
    """
    keep = given[asked]
    if not _is_stack(probe.built) or keep.shape[1] != 1 or keep.shape[2] != 1:
        return ""
    kept = keep[:, 0, 0].expand(probe.batch, -1)
    for one in _handed(probe, adapter, given):
        if not one.is_floating_point() or one.ndim < 2:
            continue
        if len(one) != len(kept) or one.shape[-1] != kept.shape[1]:
            continue
        rows = one.reshape(len(one), -1, one.shape[-1])
        if bool((rows == 0).any()) and bool(rows.min() <= _HIDDEN) and bool(rows.max() > _HIDDEN):
            shown = [
                torch.equal(rows == 0, each[:, None].expand_as(rows)) for each in (kept, ~kept)
            ]
            if any(shown):
                return style.meaning if shown[0] else _OTHER[style.meaning]
    return ""


def _is_stack(module: Any) -> bool:
    return isinstance(module, EmbeddedStack)


def _handed(probe: Probe, adapter: Adapter, given: Given) -> list[Tensor]:
    """Return the tensors that the first layer of a stack gets."""
    handed: list[Tensor] = []

    def enter(call: Callable[..., Any], *args: Any, **named: Any) -> Any:
        handed.extend(one for one in (*args, *named.values()) if isinstance(one, Tensor))
        return call(*args, **named)

    stack: EmbeddedStack = probe.built
    with _around(stack), replaced(next(stack.layers.children()), enter):
        probe.called(adapter, given)
    return handed


_HIDDEN = -1e3
"""The greatest number that hides a key where it is added to a score."""


@contextmanager
def _around(stack: EmbeddedStack) -> Iterator[None]:
    """Call the outermost class around the layers of `stack`, where that takes what it is given."""
    (inner,) = before = stack.around
    (outer,) = vars(stack).get("outer", before)
    taken, own = (inspect.signature(one.forward).parameters for one in (outer, inner))
    if all(name in taken for name in own):
        stack.around = (outer.to(next(inner.parameters()).dtype).train(inner.training),)
    try:
        yield
    finally:
        stack.around = before


def _pooled(
    probe: Probe, adapter: Adapter, given: Given, stack: EmbeddedStack, row: int | None
) -> Tensor | None:
    """Return the vectors (B, N) of all samples that the class returns, None where it has none.

    The output of its layers is moved in one `row`.
    """
    results: list[Any] = []

    def answer(call: Callable[..., Any], *args: Any, **named: Any) -> Any:
        results.append(call(*args, **named))
        return results[-1]

    layers = list(stack.layers.children())
    with (
        replaced(stack.around[0], answer),
        replaced(getattr(stack, "norm", layers[-1]), partial(_moved, stack, row)),
    ):
        called = probe.called(adapter, given)
    if isinstance(called, str) or not results:
        return None
    arrays = [one for one in tree_leaves(results[-1]) if isinstance(one, Tensor)]
    vectors = [one for one in arrays if one.ndim == 2 and one.is_floating_point()]
    return torch.cat(vectors, dim=-1) if vectors else None


def _moved(
    stack: EmbeddedStack, row: int | None, call: Callable[..., Any], *args: Any, **named: Any
) -> Any:
    """Return the result of a call, with other numbers in one `row` of its output."""
    result = call(*args, **named)
    if row is None:
        return result
    output = result[0] if isinstance(result, tuple) else result
    step = torch.linspace(1.0, 2.0, output.shape[-1], dtype=output.dtype) ** 2
    moved = output.clone()
    moved[(row,) if stack.sequence_first else (slice(None), row)] += step
    return (moved, *result[1:]) if isinstance(result, tuple) else moved
