"""Encoders whose layers attend over the samples of a batch in the place of a sequence."""

import ast
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from attentest.results.text import summary
from attentest.targets.adapt.assumptions.choices import summary as summary_of
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.encoders.inputs.arguments import of_loss
from attentest.targets.adapt.encoders.rows.wrapping import RowsWrapping
from attentest.targets.adapt.encoders.seen import lengths_in
from attentest.targets.adapt.encoders.stack import KEEP, replaced
from attentest.targets.adapt.encoders.wrapping import Wrapping
from attentest.targets.adapt.layouts import layouts, sequence_first
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.neighbours import bodies_naming

_SAMPLES, _LENGTH = 3, 5
_NEAR = 1e-4
"""Difference of outputs of one sample in batches that differ elsewhere, in single precision."""
_MIXED = (
    "{} mixes the samples of a batch: where one of them is changed, the output of the others "
    "changes. Its layers get rows (B, L, D) and take them as (L, B, D), as those of torch do "
    "without batch_first=True, so that they attend over the batch. That is a mistake wherever "
    "several samples are called at once; its layers can be judged by the name of their class."
)


_ALONE = "its layers can be judged by the name of their class."
_TAKEN = (
    "the layers of {} take rows (L, B, D), as those of torch do without batch_first=True, and get "
    "rows (B, L, D): they attend over the batch, and have the numbers of the reference otherwise"
)
_TEXTS = (
    "assumed that {} takes ids (L, B), the sequence first, as its layers attend along their first "
    "axis: if it is called with (B, L), that is a mistake"
)
_SQUARE = (
    "{} can be called where there are as many samples as tokens, and not where these numbers "
    "differ: {}. Its layers get rows (B, L, D) and take them as (L, B, D), as those of torch do "
    "without batch_first=True, so that a mask of them has the wrong shape. That is a mistake; its "
    "layers can be judged by the name of their class."
)


class Mixed(Unclear):
    """The samples of a batch depend on each other."""


def demand_separate_samples(wrapping: Wrapping, name: str) -> None:
    """Raise Mixed where a call of the class of `wrapping` joins the samples of a batch.

    Of tokens, the first axis may be that of the sequence: positions run along it then.
    """
    with undisturbed():
        is_rows = isinstance(wrapping, RowsWrapping)
        if isinstance(wrapping, RowsWrapping) and (len(wrapping.given) != 2 or wrapping.features):
            is_mixed = _mixes_rows(wrapping)
        elif wrapping.features or is_rows:
            is_mixed = _mixes_vectors(wrapping)
        else:
            is_mixed = _mixes_tokens(wrapping)
            has_labels = bool(of_loss(wrapping.module.forward))  # which may be of another shape
            if not (is_mixed or has_labels) and (failure := _failure_of_shapes(wrapping)):
                raise Mixed(_SQUARE.format(name, failure))
    if is_mixed:
        raise Mixed(_MIXED.format(name))


def mixture(wrapping: Wrapping, name: str) -> list[str]:
    """Return that the samples of a batch depend on each other, or that its ids are (L, B).

    Nothing for other classes. Raises Mixed where a call fails for other numbers of samples than of
    tokens.
    """
    try:
        demand_separate_samples(wrapping, name)
    except Mixed as question:
        if question.text != _MIXED.format(name):
            raise
        return [question.text]
    return [_TEXTS.format(name)] * attends_along_first(wrapping)


def as_called(backend: Any, stack: Code | None, reading: Reading) -> Any:
    """Return `backend`, called with rows (B, L, D) as the class of the `stack` calls its layers.

    They were read with the rows that they take, (L, B, D), under which they have the numbers of the
    reference. A mask of texts (B, L) is none that they accept. Raises Mixed where they were read
    otherwise, or a strict reading assumes nothing.
    """
    said = [one for one in stack.said if one.endswith(_ALONE)] if stack is not None else []
    if stack is None or reading.anyway:
        return backend
    if not said:
        texts = [one for one in stack.said if one == _TEXTS.format(stack.name)]
        return replace(backend, assumed=(*texts, *backend.assumed)) if texts else backend
    recipe = backend.recipes[stack.component]
    takes_rows = backend.fits and sequence_first(recipe.call.layout)
    if reading.strict or not takes_rows or _is_called_with_one(stack.thing):
        raise Mixed(said[0])
    adapter = replace(recipe.call, layout=layouts(stack.component)[0])
    sentence = _TAKEN.format(stack.name)
    return replace(
        backend,
        recipes={stack.component: replace(recipe, call=adapter)},
        fits=False,
        limits=replace(backend.limits, masks=("none",)),
        assumed=(sentence, *backend.assumed),
        understood=(backend.understood[0], sentence, *backend.understood[1:]),
        summary=summary_of(stack, adapter, recipe.parameters),
    )


_OF_A_SHAPE = ("randint", "ones", "zeros", "full", "empty", "rand")


def _is_called_with_one(thing: Any) -> bool:
    """Say whether code around the class `thing` calls it with one sequence of ids (L,)."""
    for body in bodies_naming(thing) if isinstance(thing, type) else ():
        every = [*ast.walk(ast.Module(body, []))]
        bound = [
            (one.targets[0].id, one.value)
            for one in every
            if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)
        ]
        models = [own for own, value in bound if _is_made(value, thing.__name__)]
        single = [own for own, value in bound if _has_one_axis(value)]
        for node in every:
            match node:
                case ast.Call(func=ast.Name(id=own), args=[ast.Name(id=given), *_]):
                    if own in models and given in single:
                        return True
    return False


def _is_made(value: ast.expr, name: str) -> bool:
    made = [one.func for one in ast.walk(value) if isinstance(one, ast.Call)]
    return any(isinstance(one, ast.Name) and one.id == name for one in made)


def _has_one_axis(value: ast.expr) -> bool:
    """Say whether `value` makes a tensor with one axis."""
    match value:
        case ast.Call(func=ast.Attribute(attr=made), args=args, keywords=named):
            sizes = [one.value for one in named if one.arg == "size"] or args
            shapes = [one for one in sizes if isinstance(one, ast.List | ast.Tuple)]
            if made in _OF_A_SHAPE:
                return [len(one.elts) for one in shapes] == [1]
            return made == "tensor" and any(
                all(isinstance(one, ast.Constant) for one in shape.elts) for shape in shapes
            )
    return False


def as_taken(wrapping: Wrapping) -> Wrapping:
    """Return `wrapping`, called with ids (L, B) where it takes those and makes a mask of them."""
    if wrapping.component != "encoder" or wrapping.features:
        return wrapping
    try:
        if KEEP not in wrapping.inner()[1].parameters:
            return wrapping
        demand_separate_samples(wrapping, wrapping.name)
    except Unclear:
        return wrapping
    return replace(wrapping, turned=True) if attends_along_first(wrapping) else wrapping


def attends_along_first(wrapping: Wrapping) -> bool:
    """Say whether what the layers make of an id (N, M) reaches others of its column, and no row."""
    layers = [*wrapping.module.get_submodule(wrapping.layers).children()]
    rows: list[Tensor] = []

    def note(call: Callable[..., Any], *args: Any, **named: Any) -> Any:
        output = call(*args, **named)
        rows.append((output[0] if isinstance(output, tuple) else output).detach())
        return output

    ids = torch.arange(_SAMPLES * _LENGTH).reshape(_SAMPLES, _LENGTH) % 7 + 1
    changed = ids.clone()
    changed[0, 0] = 9
    for place in range(len(_arguments(wrapping, ids))):
        rows.clear()
        with undisturbed(), replaced(layers[-1], note):
            for one in (ids, ids, changed):
                _called(wrapping, place, one)
        if len(rows) == 3 and all(one.shape[:2] == ids.shape for one in rows):
            moved = _differs(*rows[1:])
            is_random = bool(_differs(*rows[:2]).any())
            return not is_random and bool(moved[1:, 0].any()) and not moved[0, 1:].any()
    return False


def _failure_of_shapes(wrapping: Wrapping) -> str:
    """Return the failure of calls with other numbers of samples than of tokens, "" for none.

    There is none either where calls with equal numbers fail, too.
    """
    failure = ""
    for length in (_LENGTH, wrapping.sizes.max_length):
        for given in _arguments(wrapping, torch.ones(_SAMPLES, length, dtype=torch.int64)):
            try:
                wrapping.module(**given)
            except Exception as raised:  # code that a user wrote may raise anything
                failure = failure or summary(raised, 120).rstrip(".")
            else:
                return ""
    equal = _arguments(wrapping, torch.ones(_LENGTH, _LENGTH, dtype=torch.int64))
    return failure if any(_is_called(wrapping, given) for given in equal) else ""


def _is_called(wrapping: Wrapping, given: dict[str, Any]) -> bool:
    return _output(partial(wrapping.module, **given)) is not None


def _mixes_rows(wrapping: RowsWrapping) -> bool:
    """Say whether rows behind the last layer depend on another sample.

    The rows of a class token are the same in all samples before that, and show nothing.
    """
    plain = wrapping.inputs(_SAMPLES)
    changed = plain.clone()
    changed[0] = 1 - plain[0] if len(wrapping.given) == 1 else plain[0].flip(-1)
    last = [*wrapping.module.get_submodule(wrapping.layers).children()][-1]
    rows: list[Tensor] = []

    def note(_: nn.Module, __: Any, result: Any) -> None:
        held = result[0] if isinstance(result, tuple) else result
        rows.append(held.detach())

    calls = [wrapping.arguments(one) for one in (plain, plain, changed)]
    with suppress(Exception), last.register_forward_hook(note):
        for given in calls:
            wrapping.module(**given)
    if len(rows) != 3 or [*rows[0].shape[:-1]].count(_SAMPLES) != 1 or rows[0].dim() != 3:
        return False
    if _differs(*rows[:2]).any():
        return False  # it is random
    moved = _differs(*rows[1:])
    others = moved[1:] if len(moved) == _SAMPLES else moved[:, 1:]
    return bool(others.any())


def _mixes_vectors(wrapping: Wrapping) -> bool:
    """Say whether outputs of the samples of vectors (B, L, F), one each, depend on another sample.

    Where vectors are (L, B, F), no output has a row for each of the first axis alone.
    """
    for given in _arguments(wrapping, torch.ones(_SAMPLES, _LENGTH, dtype=torch.int64)):
        tokens = next(iter(given))
        plain = torch.randn(given[tokens].shape, generator=torch.Generator().manual_seed(0))
        plain = plain.to(given[tokens].dtype)
        changed = plain.clone()
        changed[0] = plain[0].flip(-1, 0)
        calls = [given | {tokens: one} for one in (plain, plain, changed)]
        called = [_output(partial(wrapping.module, **one)) for one in calls]
        outputs = [one for one in called if one is not None]
        if len(outputs) == len(called):
            shape = [*outputs[0].shape]
            if shape[:1] != [_SAMPLES] or _LENGTH in shape or len(shape) < 2:
                return False
            again, before, after = (one.flatten(1) for one in outputs)
            return not _differs(again, before).any() and bool(_differs(before, after)[1:].any())
    return False


def _lengths(wrapping: Wrapping) -> Iterator[int]:
    """Yield lengths of ids with which a call may succeed: its failure may name the only one."""
    yield from (_LENGTH, wrapping.sizes.max_length)
    for given in _arguments(wrapping, torch.ones(_SAMPLES, _LENGTH, dtype=torch.int64))[:1]:
        try:
            wrapping.module(**given)
        except Exception as raised:  # code that a user wrote may raise anything
            sizes = wrapping.sizes
            yield from lengths_in(str(raised), sizes.max_length, sizes.d_model)[1:]


def _mixes_tokens(wrapping: Wrapping) -> bool:
    for length in _lengths(wrapping):
        for call in _calls(wrapping, length):
            ids = torch.arange(_SAMPLES * length).reshape(_SAMPLES, length) % 7 + 1
            changed = ids.clone()
            changed[0, 0] = 9
            called = [call(one) for one in (ids, ids, changed, torch.ones_like(ids))]
            outputs = [one for one in called if one is not None and one.shape[:1] == (_SAMPLES,)]
            if len(outputs) < len(called):
                continue
            again, before, after, alike = outputs
            if _differs(again, before).any():
                return False  # it is random
            if before.dim() < 3 or before.shape[1] != length:
                return _moves_others(call, ids)
            moved = _differs(before, after)
            if not moved[1:, 0].any() or moved[0, 1:].any():
                return bool(moved[1:].any())
            along = _differs(alike[:, :-1], alike[:, 1:]).any()
            return bool(along and not _differs(alike[:-1], alike[1:]).any())
    return False


def _moves_others(call: Callable[[Tensor], Tensor | None], ids: Tensor) -> bool:
    """Say whether the output of a sample, of one or more rows, changes with other samples.

    All ids of those are changed: a row of the last step may depend on no other step.
    """
    changed = ids.clone()
    changed[0] = ids[0] % 7 + 2
    outputs = [one for one in map(call, (ids, changed)) if one is not None]
    if len(outputs) < 2:
        return False
    before, after = (one.reshape(len(one), -1) for one in outputs)
    return bool(_differs(before, after)[1:].any())


def _calls(wrapping: Wrapping, length: int) -> Iterator[Callable[[Tensor], Tensor | None]]:
    """Yield the ways in which the module may be called with ids (B, L)."""
    number = len(_arguments(wrapping, torch.ones(_SAMPLES, length, dtype=torch.int64)))
    for place in range(number):
        yield partial(_called, wrapping, place)


def _called(wrapping: Wrapping, place: int, ids: Tensor) -> Tensor | None:
    """Return the output of the call with the arguments at `place` of those for ids (B, L)."""
    return _output(lambda: wrapping.module(**_arguments(wrapping, ids)[place]))


def _arguments(wrapping: Wrapping, ids: Tensor) -> list[dict[str, Any]]:
    try:
        return list(wrapping.calls(ids))
    except Exception:  # what a class takes may not be read: nothing is said of it then
        return []


def _output(call: Callable[[], Any]) -> Tensor | None:
    """Return the first tensor of numbers in the result of a call, None where there is none."""
    try:
        result = call()
    except Exception:  # code that a user wrote may raise anything
        return None
    held = (one for one in tree_leaves(result) if isinstance(one, Tensor))
    return next((one.detach() for one in held if one.is_floating_point()), None)


def _differs(first: Tensor, second: Tensor) -> Tensor:
    """Return where rows (.., D) differ by more than rounding."""
    largest = max(float(first.abs().max()), float(second.abs().max()), 1e-30)
    return ((first - second).abs() > _NEAR * largest).any(-1)
