"""The result of a call of a whole model: where in it the output is, and how it is laid out."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from attentest.targets.adapt.parameters.words import HEAD, words
from attentest.targets.models.calling import Call, Conventions
from attentest.targets.models.probing import Probe, ignores_source

ONE_NUMBER = (
    ": it is one number, as a loss. The output is what is judged: let the call return it too, as "
    "in a tuple, or name the classes of its parts, one by one"
)
PROJECT = "project"
"""The method that maps states to the vocabulary, in models that are called by their methods."""


def fitted(probe: Probe, call: Call) -> Call | str:
    """Return `call` with the conventions of its result, or why that is no output of a model."""
    tokens = probe.tokens
    fired: dict[nn.Module, None] = {}  # in the order of their last calls

    def note(module: nn.Module, *_: Any) -> None:
        fired.pop(module, None)
        fired[module] = None

    hooks = [one.register_forward_hook(note) for one in probe.model.modules()]
    result = probe.called(call.compiled(raw=True), *tokens)
    for hook in hooks:
        hook.remove()
    if isinstance(result, str):
        return result
    found = list(_fitting(probe, call, result, fired))
    if not found:
        held = [one for _, one, _ in parts_of(result)]
        is_loss = bool(held) and all(one.numel() == 1 for one in held)
        return "its result holds no tensor of the shape (B, T, vocabulary)" + ONE_NUMBER * is_loss
    logits = [one for one in found if not (one.conventions.generator or one.conventions.tied)]
    if logits or len(found) == 1:
        return (logits or found)[0]
    # The embedding of the target has the shape of the states that are made of it.
    return next((one for one in found if not ignores_source(probe, one.compiled())), found[0])


def _fitting(probe: Probe, call: Call, result: Any, fired: Collection[nn.Module]) -> Iterator[Call]:
    """Yield `call` with the conventions of each part of its `result` that may be the output."""
    batch, length = probe.tokens[1].shape
    if call.conventions.is_filled:
        longest = max(one.shape[1] for one in probe.tokens)
        length = longest if call.conventions.equal else probe.sizes.max_length
    for key, part, attribute in parts_of(result):
        for drops in (False, True):
            how = call.conventions.but(part=key, attribute=attribute, drops_last=drops)
            shaped = _shaped(probe, how, part, batch, length - drops, fired)
            if shaped is not None:
                yield replace(call, conventions=shaped)


def _shaped(
    probe: Probe,
    how: Conventions,
    part: Tensor,
    batch: int,
    length: int,
    fired: Collection[nn.Module],
) -> Conventions | None:
    lead = (length, batch) if how.sequence_first else (batch, length)
    sizes, shape = probe.sizes, tuple(part.shape)
    if shape == (*lead, sizes.target_vocabulary):
        return how
    if shape == (*reversed(lead), sizes.target_vocabulary):
        return how.but(turned=True)
    if shape == (batch, sizes.target_vocabulary, length):
        return how.but(classes_second=True)
    if shape == (batch * length, sizes.target_vocabulary):
        return how.but(flat=True)
    if shape == (*lead, sizes.d_model):
        outside = generator_of(probe, part, fired)
        if outside:
            return how.but(generator=outside)
        tied = _table_of_target(probe, fired)
        return how.but(tied=tied) if tied else None
    return None


def _table_of_target(probe: Probe, fired: Collection[nn.Module]) -> str:
    """Return the path of the table of tokens that was called last, "" for none."""
    shape = (probe.sizes.target_vocabulary, probe.sizes.d_model)
    tables = [
        one for one in fired if isinstance(one, nn.Embedding) and tuple(one.weight.shape) == shape
    ]
    paths = {module: name for name, module in probe.model.named_modules()}
    return f"{paths[tables[-1]]}.weight" if tables else ""


def generator_of(probe: Probe, states: Tensor, fired: Collection[nn.Module]) -> str:
    """Return the child that maps states to the vocabulary and was not called, "" for none."""
    found = []
    parts = {name: one for name, one in probe.model.named_children() if one not in fired}
    if callable(getattr(probe.model, PROJECT, None)):
        parts = {PROJECT: getattr(probe.model, PROJECT), **parts}
    for name, child in parts.items():
        result = probe.called(lambda _, x, child=child: child(x), states)
        wanted = (*states.shape[:2], probe.sizes.target_vocabulary)
        if isinstance(result, Tensor) and tuple(result.shape) == wanted:
            found.append(name)
    named = [name for name in found if name == PROJECT or set(words(name)) & HEAD]
    return next(iter(named or found), "")


def parts_of(result: Any) -> Iterator[tuple[int | str | None, Tensor, bool]]:
    """Yield the tensors of a result: the place of each, and whether that is an attribute."""
    if isinstance(result, Tensor):
        yield None, result, False
    elif isinstance(result, Mapping):
        yield from ((key, one, False) for key, one in result.items() if isinstance(one, Tensor))
    elif isinstance(result, tuple | list):
        names = getattr(result, "_fields", range(len(result)))
        for key, one in zip(names, result, strict=True):
            if isinstance(one, Tensor):
                yield key, one, isinstance(key, str)
    else:
        held = {**getattr(result, "__dict__", {}), **_properties(result)}
        yield from ((key, one, True) for key, one in held.items() if isinstance(one, Tensor))


def _properties(result: Any) -> dict[str, Any]:
    """Return the values of the properties of an object that the user's code defines."""
    found = {}
    for kind in type(result).__mro__:
        for name, one in vars(kind).items():
            if isinstance(one, property) and not name.startswith("_"):
                try:
                    found[name] = getattr(result, name)
                except Exception:  # code that a user wrote may raise anything
                    continue
    return found
