"""Blocks of decoder-only models: how several of them make a whole model."""

import inspect
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.fillings import may_be_none
from attentest.targets.adapt.names import LAYER_INDEX, ROLES, turns, words
from attentest.targets.adapt.objects.settings import (
    mentions,
    settings_doubts,
    settings_near,
)
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading
from attentest.targets.adapt.wrappers.turned import Turned, forms
from attentest.targets.language_models.argument_names import AT_START
from attentest.targets.language_models.calling import Call, probe_tokens
from attentest.targets.language_models.construction.building import (
    PROBE,
    Building,
    Options,
    failure_of,
    space_of,
)
from attentest.targets.language_models.ordering import with_masks
from attentest.targets.language_models.probing import probe_of, probe_sizes
from attentest.targets.language_models.surrounded.modules import OfBlocks

ASSUMED = (
    "assumed that {} is a block of a decoder-only model: several are judged, one after another, "
    "between a table of tokens and a generator that are not its own"
)
_GIVEN = ", with {} given as the rotary positions 0 to T - 1, {}, and the base 10,000"
_PLACED = ", with {} given as the positions 0 to T - 1"

MOST = 3
"""The largest number of readings of one block with other results."""

_IMPLEMENTATION = "_attn_implementation"
"""A field that settings have at a call, and that says which code computes attention."""

_WAYS = 6
"""The largest number of ways to build a block that are tried."""

_FREE = ("d_model", "heads", "d_ff", "max_length")
"""The sizes that an argument of a block may be: it has no vocabulary, and is one layer."""

_PLACES = words("positionids positions posids inputpos inputpositions pos position")


def buildings_of_blocks(thing: type[nn.Module], name: str, reading: Reading) -> Iterator[Building]:
    """Yield the ways in which several blocks make a model, each with another result."""
    signature = inspect.signature(thing.forward)
    called = {own: one for own, one in list(signature.parameters.items())[1:] if _is_named(one)}
    x = next((own for own in called if squashed(own) in ROLES["x"]), next(iter(called), ""))
    fixed = _fixed({own: one for own, one in called.items() if own != x}, reading)
    if not x or fixed is None:
        return
    seen: list[Tensor] = []
    for block, space in _built(thing, name, reading):
        for around, options, said in _around(called, x):
            held = "".join(f", {own}={value!r}" for own, value in {**options, **fixed}.items())
            expression = (
                f"{OfBlocks.__name__}([{around.format(block)} for number in range(sizes.layers)], "
                f'sizes.target_vocabulary, sizes.d_model, "{x}"{held})'
            )
            doubts = (*settings_doubts(thing, block), ASSUMED.format(name) + said)
            made = Building(expression, space, doubts, around=_AROUND)
            if failure_of(made):
                break  # the tables change nothing of how it is built
            output = _output(made)
            if output is None or any(torch.equal(output, other) for other in seen):
                continue
            seen.append(output)
            yield made
            if len(seen) == MOST:
                return
        if seen:
            return


_AROUND = ("final_norm", "tying", "embedding_scale", "generator_bias")
"""The choices that a block without its tables and its generator does not make."""


def takes_positions(thing: type[nn.Module]) -> bool:
    """Say whether a call of the class `thing` may be given positions, as those of a text."""
    named = inspect.signature(thing.forward).parameters
    return any(turns(own) or squashed(own) in _PLACES for own in named)


def _is_named(one: inspect.Parameter) -> bool:
    return one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)


def _built(
    thing: type[nn.Module], name: str, reading: Reading
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the expressions that build one block, and the names that they need."""
    space = {
        **space_of(thing, name, reading),
        OfBlocks.__name__: OfBlocks,
        Turned.__name__: Turned,
    }
    named = {
        own: "number" for own in inspect.signature(thing).parameters if squashed(own) in LAYER_INDEX
    }
    options = Options(space, reading, thing, named, _FREE)
    found = list(islice(options.expressions(thing, name), _WAYS))
    yield from ((one, space) for one in found)
    for one in found if mentions(thing, _IMPLEMENTATION) else ():
        yield from ((eager, space) for eager in _eager(one, settings_near(thing)))


def _eager(expression: str, settings: Collection[str]) -> Iterator[str]:
    """Yield an expression whose object of settings says which code computes attention."""
    for one in settings:
        if f"{one}(" in expression:
            yield expression.replace(f"{one}(", f'{one}(attn_implementation="eager", ')


def _around(
    called: Mapping[str, inspect.Parameter], x: str
) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield what is put around a block, the options that say more, and both in words."""
    free = {
        own: one
        for own, one in called.items()
        if own != x and one.default in (inspect.Parameter.empty, None)
    }
    turning = [own for own in free if turns(own)]
    placing = [own for own in free if squashed(own) in _PLACES][:1]
    required = [own for own, one in free.items() if one.default is inspect.Parameter.empty]
    if not {*turning, *placing} & {*required}:
        yield "{}", {}, ""
    if not {*placing} & {*required}:
        for options, said in forms(turning) if turning else ():
            given = ", ".join(f"{own}={value!r}" for own, value in options.items())
            around = f"{Turned.__name__}({{}}, sizes.d_model // sizes.heads, {_escaped(given)})"
            yield around, {}, _GIVEN.format(" and ".join(turning), said)
    if placing and not {*turning} & {*required}:
        yield "{}", {"places": placing[0]}, _PLACED.format(placing[0])


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _fixed(rest: Mapping[str, inspect.Parameter], reading: Reading) -> dict[str, Any] | None:
    """Return the values of arguments that need one, None where nothing says one."""
    found = {own: value for own, value in reading.given.items() if own in rest}
    for own, one in rest.items():
        if own in found or one.default is not inspect.Parameter.empty:
            continue
        if "mask" in squashed(own):
            found[own] = None
        elif squashed(own) in AT_START:
            found[own] = AT_START[squashed(own)]
        elif turns(own) or squashed(own) in _PLACES:
            continue
        elif may_be_none(one.annotation):
            found[own] = None
        else:
            return None
    return found


def _output(built: Building) -> Tensor | None:
    """Return the logits of the probe, None where there are none that are finite.

    A block that returns two tensors like x leaves it to its caller to add them: it is none.
    """
    streams: list[int] = []

    def count(_: nn.Module, given: Any, result: Any) -> None:
        held = result if isinstance(result, tuple | list) else [result]
        shape = (*probe_tokens().shape, PROBE.d_model)
        streams.append(sum(isinstance(one, Tensor) and one.shape == shape for one in held))

    try:
        with undisturbed():
            model = probe_of(built, probe_sizes(built))
            for block in model.blocks:  # type: ignore[union-attr]  # it is a list of modules
                block.register_forward_hook(count)
            found = _answer(model)
    except Exception:  # code that a user wrote may raise anything
        return None
    sound = found is not None and bool(found.isfinite().all())
    return found if sound and {*streams} == {1} else None


def _answer(model: nn.Module) -> Tensor | None:
    """Return the logits of the probe, with a mask of later tokens where one must be given."""
    plain = Call("tokens")
    for call in (plain, *with_masks(model, plain)):
        with suppress(Exception):  # code that a user wrote may raise anything
            found = call.compiled()(model, probe_tokens())
            return found if isinstance(found, Tensor) else None
    return None
