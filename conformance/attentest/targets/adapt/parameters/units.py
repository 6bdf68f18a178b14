"""The parameters of a module as units: a weight with its bias, a gain with its bias, a table."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attentest.targets.adapt.parameters.words import BIAS, GAIN, WEIGHT, stem, words

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Unit:
    """A weight and the bias that belongs to it, by the module's own names ("" for none).

    `path` is what both names begin with, or the name of the weight where there is no such thing.
    `kind` is "linear" (an nn.Linear, known to be stored as (out, in)), "packed" (the projections
    of an nn.MultiheadAttention), "table" (an nn.Embedding), "norm" or "matrix" (anything else).
    """

    path: str
    kind: str
    weight: str
    bias: str = ""
    shape: Shape = ()
    bias_shape: Shape = ()

    @property
    def per_head(self) -> bool:
        """Whether it stands for one of these in every head."""
        return "*" in self.path

    @property
    def names(self) -> tuple[str, ...]:
        """The names it holds."""
        return tuple(name for name in (self.weight, self.bias) if name)


def units(module: nn.Module, heads: int) -> list[Unit]:
    """Return the units of `module`, in the order of registration; a list of heads is one unit."""
    own = _by_head(dict(module.named_parameters(remove_duplicate=False)), heads)
    modules = dict(module.named_modules(remove_duplicate=False))
    owners: dict[str, dict[str, Tensor]] = defaultdict(dict)
    for name, tensor in own.items():
        owner, _, leaf = name.rpartition(".")
        owners[owner][leaf] = tensor
    found: list[Unit] = []
    loose: dict[str, Tensor] = {}
    for owner, held in owners.items():
        unit = _owned(owner, held, modules.get(owner.replace("*", "0")))
        if unit:
            found.append(unit)
        else:
            loose |= {f"{owner}.{leaf}".lstrip("."): tensor for leaf, tensor in held.items()}
    order = list(own)
    return sorted(found + list(_loose(loose)), key=lambda unit: order.index(unit.weight))


def within(all_units: Iterable[Unit], prefix: str) -> list[Unit]:
    """Return the units whose path begins with the text `prefix`."""
    return [unit for unit in all_units if unit.path.startswith(prefix)]


def squeezed(shape: Shape) -> Shape:
    """Return `shape` without axes of length one."""
    return tuple(length for length in shape if length != 1)


def _by_head(own: Mapping[str, Tensor], heads: int) -> dict[str, Tensor]:
    """Write `*` for the number in lists that have one like parameter for every head."""
    numbers: dict[str, set[int]] = defaultdict(set)
    shapes: dict[str, set[Shape]] = defaultdict(set)
    starred: dict[str, list[str]] = {}
    for name, tensor in own.items():
        starred[name] = [
            f"{name[: match.start()]}*{name[match.end() :]}"
            for match in re.finditer(r"(?<=\.)\d+(?=\.)", f"{name}.")
        ]
        for match, pattern in zip(
            re.finditer(r"(?<=\.)\d+(?=\.)", f"{name}."), starred[name], strict=True
        ):
            numbers[pattern].add(int(match[0]))
            shapes[pattern].add(tuple(tensor.shape))
    found: dict[str, Tensor] = {}
    for name, tensor in own.items():
        lists = [
            pattern
            for pattern in starred[name]
            if heads > 1 and numbers[pattern] == set(range(heads)) and len(shapes[pattern]) == 1
        ]
        found.setdefault(lists[0].removesuffix(".") if lists else name, tensor)
    return found


def _owned(owner: str, held: Mapping[str, Tensor], module: nn.Module | None) -> Unit | None:
    """Return the unit that one module holds alone, if its parameters are one."""
    if isinstance(module, nn.MultiheadAttention) and "in_proj_weight" in held:
        return _unit(f"{owner}.".lstrip(".") + "in_proj", "packed", held, owner, "in_proj_")
    if set(held) <= {"weight", "bias"} and "weight" in held:
        return _unit(owner, _kind(module, held["weight"]), held, owner)
    vectors = [tensor for tensor in held.values() if len(squeezed(tuple(tensor.shape))) <= 1]
    if len(held) == len(vectors) == 2 and _of_one_shape(vectors):
        return _norm(owner, {f"{owner}.{leaf}".lstrip("."): one for leaf, one in held.items()})
    return None


def _kind(module: nn.Module | None, weight: Tensor) -> str:
    for kind, types in (("linear", nn.Linear), ("table", nn.Embedding), ("norm", nn.LayerNorm)):
        if isinstance(module, types):
            return kind
    return "norm" if len(squeezed(tuple(weight.shape))) <= 1 else "matrix"


def _unit(path: str, kind: str, held: Mapping[str, Tensor], owner: str, start: str = "") -> Unit:
    prefix = f"{owner}.".lstrip(".") + start
    weight, bias = held[f"{start}weight"], held.get(f"{start}bias")
    return Unit(
        path=path,
        kind=kind,
        weight=f"{prefix}weight",
        bias="" if bias is None else f"{prefix}bias",
        shape=tuple(weight.shape),
        bias_shape=() if bias is None else tuple(bias.shape),
    )


def _loose(held: Mapping[str, Tensor]) -> Iterable[Unit]:
    """Join the bare parameters whose names differ in the words for weight and bias alone."""
    groups: dict[tuple[str, ...], dict[str, Tensor]] = defaultdict(dict)
    for name, tensor in held.items():
        groups[stem(name)][name] = tensor
    for group in groups.values():
        matrices = [name for name, tensor in group.items() if not _vector(name, tensor)]
        vectors = [name for name in group if name not in matrices]
        if len(matrices) == 1 and len(vectors) <= 1:
            yield _raw(matrices[0], vectors[0] if vectors else "", group)
        elif not matrices and len(vectors) == 2 and _of_one_shape(group.values()):
            yield _norm(vectors[0], group)
        else:
            yield from (_raw(name, "", group) for name in matrices)
            yield from (_raw(name, "", group, "norm") for name in vectors if not matrices)


def _of_one_shape(held: Iterable[Tensor]) -> bool:
    """Say whether the parameters are of one shape, as gain and bias of a norm are."""
    return len({tuple(tensor.shape) for tensor in held}) == 1


def _vector(name: str, tensor: Tensor) -> bool:
    last = set(words(name.rpartition(".")[2]))
    return len(squeezed(tuple(tensor.shape))) <= 1 or bool(last & BIAS and not last & WEIGHT)


def _raw(weight: str, bias: str, held: Mapping[str, Tensor], kind: str = "matrix") -> Unit:
    bias_shape = tuple(held[bias].shape) if bias else ()
    return Unit(weight, kind, weight, bias, tuple(held[weight].shape), bias_shape)


def _norm(path: str, held: Mapping[str, Tensor]) -> Unit:
    """Return the unit of a norm: gain and bias by both names, or else by what they begin with.

    One name alone counts where they do not begin with ones and zeros: a "mean_scale" may be added.
    """
    first, second = held
    said = [_says_gain(first, second), _says_gain(second, first)]
    begun = [_begins_as_gain(held[first], held[second]), _begins_as_gain(held[second], held[first])]
    sure = max(said) == 2 and min(said) == 0
    by_names = sure or (said[0] != said[1] and not any(begun))
    is_first = said[0] > said[1] if by_names else not begun[1]
    gain, bias = (first, second) if is_first else (second, first)
    return Unit(path, "norm", gain, bias, tuple(held[gain].shape), tuple(held[bias].shape))


def _says_gain(name: str, other: str) -> int:
    """Return how many of two names say that the first is a gain and the other a bias."""
    own, rest = (set(words(one.rpartition(".")[2])) for one in (name, other))
    return bool(own & GAIN) + bool(rest & BIAS)


def _begins_as_gain(one: Tensor, other: Tensor) -> bool:
    """Say whether `one` begins with ones and the `other` with zeros, or all else than ones."""
    return bool(torch.all(one == 1)) and not bool(torch.all(other == 1))


def tables_of(own: Iterable[Unit], rows: Collection[int], width: int) -> list[Unit]:
    """Return the tables of `own` units with one of the numbers of `rows`, and `width` columns."""
    shapes = [{one, width} for one in rows]
    return [one for one in own if one.kind != "linear" and set(squeezed(one.shape)) in shapes]
