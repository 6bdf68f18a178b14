"""Sizes of an encoder that its code writes out as numbers, once or more: 512 wherever it is one."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from torch import Tensor, nn

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.construction import Construction
from attentest.targets.adapt.encoders import default_sizes
from attentest.targets.adapt.fillings import Filling
from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.parameters.units import squeezed
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading
from attentest.targets.constants.components import assumed
from attentest.targets.constants.copies import numbers_named
from attentest.targets.models.size_names import size_by_words
from attentest.targets.signatures import constructor_arguments

_LEAST = 16
"""The smallest number that is a width, a length or a vocabulary wherever it is written."""


def with_sizes_of_code(thing: Any, reading: Reading, built: Construction) -> Iterator[Construction]:
    """Yield `built` with the number of heads of its code, and with all sizes that it writes out.

    The greatest length may be the default of an argument that the class leaves out.
    """
    if (heads := default_sizes.with_heads_of_code(thing, reading, built)) is not None:
        yield heads
    if "d_model" in built.known and "max_length" not in built.known:
        rows, numbers = {*_all_rows(built)}, numbers_named(thing)
        said = [own for own in numbers if size_by_words(squashed(own), "") == "max_length"]
        longest = [own for own in said if numbers[own] in rows and numbers[own] >= _LEAST]
        if len({numbers[own] for own in longest}) == 1:
            yield _with_longest(built, longest)
    yield from with_written_sizes(thing, reading, built)


def _with_longest(built: Construction, names: Sequence[str]) -> Construction:
    """Return `built` with the greatest length for `names` in a copy: of the model it is given."""
    longest = dict.fromkeys(names, _filling("max_length"))
    found: dict[str, Filling] = {}
    for own, one in built.fillings.items():
        if isinstance(part := one.value, Construction) and _is_module(part.make):
            made = part.with_constants({**part.constants, **longest})
            found[own] = replace(one, value=made, settles=made.known)
    if not found:
        return built.with_constants({**built.constants, **longest})
    remark = "; ".join([*filter(None, [built.remark]), *assumed(longest)])
    return replace(built, fillings={**built.fillings, **found}, remark=remark)


def _is_module(make: Any) -> bool:
    return inspect.isclass(make) and issubclass(make, nn.Module)


def _all_rows(built: Construction) -> Iterator[int]:
    """Yield the rows of all that is as wide as the model, at any depth, registered or not."""
    try:
        with undisturbed():
            module = built(DISTINCT)
    except Exception:  # code that a user wrote may raise anything
        return
    plain = [one for part in module.modules() for one in vars(part).values()]
    for one in (*module.parameters(), *module.buffers(), *plain):
        if isinstance(one, Tensor) and one.dim() > 1 and one.shape[-1] == DISTINCT.d_model:
            yield one.shape[-2]


def with_written_sizes(thing: Any, reading: Reading, built: Construction) -> Iterator[Construction]:
    """Yield `built` in copies of its file that have sizes in the place of numbers of its code.

    The width is the default of an argument, or else that of the tables; the vocabulary and the
    greatest length are the rows of the tables. The numbers of heads and of layers are those that
    code names.
    """
    if not numbers_named(thing):
        return
    numbers = dict(_numbers(thing, built))
    sizes = {f"number_{value}": _filling(size) for size, value in numbers.items()}
    if len(sizes) < len(numbers) or not sizes:
        return
    constants = {**built.constants, **sizes}
    held = built.with_constants(constants)
    yield default_sizes.with_heads_of_code(thing, reading, held) or held


def _numbers(thing: Any, built: Construction) -> Iterator[tuple[str, int]]:
    """Yield the sizes of `built` that numbers of its code are, with these."""
    widths = _defaults(thing, built).get("d_model", [])
    rows = dict(_tables(built)) if "d_model" not in built.known else {}
    width = widths[0] if len(set(widths)) == 1 else rows.get("d_model", 0)
    if width < _LEAST:
        return
    yield "d_model", width
    for size in ("source_vocabulary", "max_length"):
        if size not in built.known and rows.get(size, 0) >= _LEAST:
            yield size, rows[size]


def _defaults(thing: Any, built: Construction) -> Mapping[str, list[int]]:
    """Return the numbers that are defaults of the arguments that are sizes, by these."""
    found: dict[str, list[int]] = {}
    for own, one in constructor_arguments(thing).items():
        filling = built.fillings.get(own)
        if filling is not None and len(filling.settles) == 1 and type(one.default) is int:
            found.setdefault(next(iter(filling.settles)), []).append(one.default)
    return found


def _tables(built: Construction) -> Iterator[tuple[str, int]]:
    """Yield the width, the vocabulary and the greatest length of the tables as code has them."""
    try:
        with undisturbed():
            module = built(DISTINCT)
    except Exception:  # code that a user wrote may raise anything
        return
    tables = [one for one in module.modules() if isinstance(one, nn.Embedding)]
    if not tables:
        return
    tokens = max(tables, key=lambda one: one.num_embeddings)
    yield "d_model", tokens.embedding_dim
    yield "source_vocabulary", tokens.num_embeddings
    places = {*_rows(module, tokens.weight)}
    if len(places) == 1:
        yield "max_length", places.pop()


def _rows(module: nn.Module, tokens: Tensor) -> Iterator[int]:
    """Yield the rows of tables that may be those of positions, as wide as that of the tokens."""
    own = [one.weight for one in module.modules() if isinstance(one, nn.Embedding)]
    own += [one for name, one in module.named_parameters() if "." not in name]
    own += [one for name, one in module.named_buffers() if name.count(".") < 2]
    for one in own:
        rows, *width = squeezed(tuple(one.shape)) or (0,)
        if one is not tokens and width == [tokens.shape[1]] and rows >= _LEAST:
            yield rows


def _filling(size: str) -> Filling:
    return Filling(size, attrgetter(size), frozenset([size]), f"sizes.{size}")
