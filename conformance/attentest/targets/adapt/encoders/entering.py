"""The input of the first layer in a class that embeds its tokens: embedding, positions, norm."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from attentest.targets.adapt.code import POSITIONS
from attentest.targets.adapt.encoders.stack import is_same, replaced
from attentest.targets.adapt.encoders.wrapping import Wrapping
from attentest.targets.adapt.parameters.units import squeezed
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Unclear
from attentest_spec import CHOICES, Choices, Sizes
from attentest_spec.choices import Value
from attentest_spec.parameters import learned_positions
from attentest_spec.positional_encoding import table
from attentest_spec.setting import Setting

_BATCH, _LENGTH = 2, 11
BETWEEN = "the sum with numbers that differ between samples"
_IDLE = (
    "A call of {0} never calls its layers, {1}: its output is the same whatever their parameters "
    "are. Either that is a mistake, or other code calls them: name the class of one of them, or a "
    "class of your own that calls them all."
)
_NEAR = 1e-4
"""Largest relative difference of sines in single precision, with room."""
_OFFSETS = (0, 1, 2)
"""The rows of a table of sines before that of the first position."""


class NotRead(Exception):
    """An input of the first layer that is no sum of rows and positions; its text is the reason."""


class Mismatch(Exception):
    """A sum of rows and positions that is that of no option; its text says what it is."""

    subject = "what the first of them gets is "


Added = Callable[[Sizes], Callable[[Tensor], Tensor]]
"""Returns the function that adds positions to rows (B, L, D), as built at some sizes."""


class OtherPositions(Mismatch):
    """Positions that no parameter holds, and that are those of no option.

    `added` returns what adds them to rows (B, L, D), for the class as it is built at some sizes.
    """

    added: Added | None = None


class Unused(Mismatch):
    """A table of positions on which nothing depends."""

    subject = ""


class Idle(Unclear):
    """A class whose layers have no effect on what its call gives; its text is the question."""


class _Entered(Exception):
    """The first layer was called."""


@dataclass(frozen=True)
class Entering:
    """The input of the first layer, of a call of `wrapping` with parameters that are random.

    `tables` are the names of parameters that may be the table of the tokens (V, D). Parameters that
    are not trained keep their numbers: a table of sines may be one. A `length` is that of all
    sequences, which may get one row more, of a class: it is left out.
    """

    wrapping: Wrapping
    tables: Sequence[str]
    length: int = 0

    def choices(self) -> dict[str, Value]:
        """Return the options that give the numbers; raises NotRead or Mismatch for none."""
        with undisturbed():
            self._randomise()
            return self._choices()

    def rows_added(self, x: Tensor, length: int = 0) -> Tensor:
        """Return the rows `x` (B, L, D) with what the class adds where all its tables are 0.

        A `length` is that of all texts, of which the first rows are taken.
        """
        ids = torch.ones((len(x), length or x.shape[1]), dtype=torch.int64)
        with undisturbed():
            own = [one for table in self.tables for one in (table, *self._rest(table))]
            plain = self._without(list(dict.fromkeys(own)), ids)
        return x + plain[:, : x.shape[1]].to(x)

    def _choices(self) -> dict[str, Value]:
        ids, others = (self._ids(seed) for seed in (1, 2))
        own = next((one for one in self.tables if self._changes(one, ids)), "")
        if not own:
            raise NotRead("none of its tables of tokens has an effect on it")
        rows, still = self._parameters[own], self._without([own], ids)
        if not is_near(still, self._without([own], others)):
            raise NotRead("it depends on the tokens otherwise than by one table")
        used = [one for one in self._rest(own) if self._changes(one, ids)]
        odd = [one for one in used if not self._is_table(one)]
        if odd:
            raise NotRead(f"it depends on {' and '.join(odd)}")
        if not is_near(still, still[:1].expand_as(still)):
            plain = self._without([own, *used], ids)
            kind = Mismatch if is_near(plain, plain[:1].expand_as(plain)) else OtherPositions
            raise kind(BETWEEN)
        for one in self._rest(own):
            if one not in used and self._is_of_positions(one) and self._is_unused(one, ids):
                raise Unused(f"no output depends on {one}, which has a row for each position")
        embedded = self._entered(ids) - still
        scale = _factor(embedded, rows[ids])
        if scale is None:
            raise Mismatch("not the rows of the tokens times a number, with positions added")
        return {
            "embedding_scale": _scale(scale, rows.shape[-1]),
            **self._positions(own, used, ids),
            "embedding_norm": "present" if self._norm else "none",
        }

    def _positions(self, own: str, used: Sequence[str], ids: Tensor) -> dict[str, Value]:
        """Return the options of what is added by position, with the table `own` of tokens at 0."""
        plain = self._without([own, *used], ids)
        found = []
        if plain.abs().max() > _NEAR:
            found.append(_sines(plain[0]))
        for one in used:
            rest = [own, *(other for other in used if other != one)]
            found += _rows(one, self._parameters[one], (self._without(rest, ids) - plain)[0])
        if len(found) > 1:
            raise NotRead("it adds several tables of positions")
        return found[0] if found else {"positional_encoding": "none"}

    @cached_property
    def _parameters(self) -> Mapping[str, Tensor]:
        own = self.wrapping.module.named_parameters(remove_duplicate=False)
        return {name: one.detach() for name, one in own if one.requires_grad or name in self.tables}

    @cached_property
    def _norm(self) -> nn.Module | None:
        """The norm whose output the first layer gets, None where it gets another tensor."""
        seen: list[tuple[nn.Module, Tensor, Tensor]] = []
        entered = self._called(self._ids(1), seen)
        return next((one for one, _, output in seen if _is_in_turn(entered, output)), None)

    def _randomise(self) -> None:
        source = torch.Generator().manual_seed(0)
        for one in self._parameters.values():
            if one.is_floating_point():
                one.copy_(torch.randn(one.shape, generator=source, dtype=torch.float64))

    def _ids(self, seed: int) -> Tensor:
        """Return ids that are neither of the first ones nor of the last ones."""
        source = torch.Generator().manual_seed(seed)
        shape = (_BATCH, self.length or _LENGTH)
        return torch.randint(3, self.wrapping.sizes.source_vocabulary - 3, shape, generator=source)

    def _rest(self, own: str) -> Iterator[str]:
        """Yield the parameters that are neither those of the layers nor the table `own`."""
        norms = {id(one) for one in (self._norm.parameters() if self._norm is not None else ())} | {
            id(one) for one in self.wrapping.module.get_submodule(self._layers).parameters()
        }
        table_ = self.wrapping.module.get_parameter(own)
        for name, one in self.wrapping.module.named_parameters():
            if id(one) not in norms and one is not table_ and name in self._parameters:
                yield name

    @property
    def _layers(self) -> str:
        return self.wrapping.layers

    def _is_table(self, name: str) -> bool:
        shape = squeezed(tuple(self._parameters[name].shape))
        width = self.wrapping.sizes.d_model
        return len(shape) == 2 and shape[1] == width != shape[0]

    def _is_of_positions(self, name: str) -> bool:
        """Say whether a parameter has as many rows as there are positions, or more."""
        rows = squeezed(tuple(self._parameters[name].shape))[:1]
        return self._is_table(name) and rows >= (self.length or POSITIONS,)

    def _is_unused(self, name: str, ids: Tensor) -> bool:
        """Say whether no output of a call depends on the parameter `name`."""
        own, before = self._parameters[name], self._outputs(ids)
        kept = own.clone()
        own.zero_()
        try:
            after = self._outputs(ids)
        finally:
            own.copy_(kept)
        pairs = zip(before, after, strict=False)
        return bool(before) and all(torch.equal(one, other) for one, other in pairs)

    def _changes(self, name: str, ids: Tensor) -> bool:
        """Say whether the parameter `name` has an effect on the input of the first layer."""
        return not torch.equal(self._entered(ids), self._without([name], ids))

    def _without(self, names: Sequence[str], ids: Tensor) -> Tensor:
        """Return the input of the first layer with the parameters `names` at 0."""
        held = [self._parameters[one] for one in names]
        before = [one.clone() for one in held]
        for one in held:
            one.zero_()
        try:
            return self._entered(ids)
        finally:
            for one, value in zip(held, before, strict=True):
                one.copy_(value)

    def _entered(self, ids: Tensor) -> Tensor:
        """Return the input (B, L, D) of the first layer, or of the norm before it."""
        seen: list[tuple[nn.Module, Tensor, Tensor]] = []
        entered = self._called(ids, seen)
        given = next((x for _, x, output in seen if _is_in_turn(entered, output)), entered)
        if given.shape[:2] == ids.shape[::-1]:
            given = given.transpose(0, 1)
        if self.length and given.shape[1] == self.length + 1:
            given = given[:, self._tokens]
        if given.shape != (*ids.shape, self.wrapping.sizes.d_model):
            raise NotRead("it has no row for every token")
        return given.double().clone()

    @cached_property
    def _tokens(self) -> slice:
        """The rows of the tokens where there is one more, which is that of a class in all texts."""
        called = [self._called(self._ids(seed), []) for seed in (1, 2)]
        rows = torch.cat([one if len(one) == _BATCH else one.transpose(0, 1) for one in called])
        first, last = (is_near(rows[:1, at].expand_as(rows[:, at]), rows[:, at]) for at in (0, -1))
        if first == last:
            raise NotRead("it has a row more than tokens, and nothing says which")
        return slice(1, None) if first else slice(0, -1)

    def _called(self, ids: Tensor, seen: list[tuple[nn.Module, Tensor, Tensor]]) -> Tensor:
        """Return the input of the first layer; `seen` gets the calls of norms before it."""
        failure = ""
        for given in self.wrapping.calls(ids):
            entered: list[Tensor] = []
            try:
                self._watch(given, entered, seen)
            except _Entered:
                return entered[0]
            except Exception as raised:  # code that a user wrote may raise anything
                failure = failure or f"{type(raised).__name__}: {raised}"
        if not failure:  # a list of parts, which the loop calls one by one
            if self._is_without_effect(ids):
                raise Idle(_IDLE.format(self.wrapping.name, self._layers))
            raise NotRead("its first layer is never called as one module")
        raise NotRead(f"a call failed: {failure}")

    def _is_without_effect(self, ids: Tensor) -> bool:
        """Say whether no call of the module depends on a parameter of its layers."""
        held = list(self.wrapping.module.get_submodule(self._layers).parameters())
        kept = [one.clone() for one in held]
        try:
            before = self._outputs(ids)
            for one in held:
                one.mul_(-0.5).add_(0.1)
            after = self._outputs(ids)
        finally:
            for one, value in zip(held, kept, strict=True):
                one.copy_(value)
        pairs = zip(before, after, strict=False)
        return bool(before) and bool(held) and all(torch.equal(x, y) for x, y in pairs)

    def _outputs(self, ids: Tensor) -> list[Tensor]:
        """Return the tensors that calls of the module in evaluation mode give."""
        found: list[Tensor] = []
        for given in self.wrapping.calls(ids):
            try:
                result = self.wrapping.module.eval()(**given)
            except Exception:  # code that a user wrote may raise anything
                continue
            every = [one for one in tree_leaves(result) if isinstance(one, Tensor)]
            found += [one.double().nan_to_num() for one in every]  # a mask may hide all
        return found

    def _watch(
        self,
        given: Mapping[str, Any],
        entered: list[Tensor],
        seen: list[tuple[nn.Module, Tensor, Tensor]],
    ) -> None:
        def enter(_: Callable[..., Any], *args: Any, **named: Any) -> Any:
            entered.append(next(x for x in (*args, *named.values()) if isinstance(x, Tensor)))
            raise _Entered

        layers = self.wrapping.module.get_submodule(self._layers)
        inside = set(layers.modules())
        handles = [
            one.register_forward_hook(lambda held, x, y: seen.append((held, x[0], y)))
            for one in self.wrapping.module.modules()
            if one not in inside and is_norm(one)
        ]
        try:
            with replaced(next(layers.children()), enter):
                self.wrapping.module(**given)
        finally:
            for one in handles:
                one.remove()


def _is_in_turn(entered: Tensor, output: Tensor) -> bool:
    """Say whether the first layer gets `output`, with its samples first or its rows."""
    turned = output.transpose(0, 1) if output.ndim > 1 else output
    return is_same(entered, output) or is_same(entered, turned)


def is_norm(module: nn.Module) -> bool:
    """Say whether the parameters of `module` are vectors of one length, as those of a norm are."""
    shapes = {tuple(squeezed(tuple(one.shape))) for one in module.parameters()}
    return len(shapes) == 1 and len(next(iter(shapes))) == 1


def _factor(values: Tensor, rows: Tensor) -> float | None:
    """Return the number by which `rows` are multiplied in `values`, None for no number."""
    factor = float((values * rows).sum() / rows.square().sum())
    return factor if abs(factor) > _NEAR and is_near(values, factor * rows) else None


def is_near(one: Tensor, other: Tensor) -> bool:
    """Say whether two tensors differ by rounding in single precision at most."""
    room = _NEAR * max(1.0, float(one.abs().max()))
    return one.shape == other.shape and bool((one - other).abs().max() <= room)


def _scale(factor: float, width: int) -> str:
    for name, value in (("sqrt-d", sqrt(width)), ("none", 1.0)):
        if abs(factor - value) <= _NEAR * value:
            return name
    root = {width: "d_model", 1 / sqrt(width): "1 / sqrt(d_model)", 1 / width: "1 / d_model"}
    words = next((name for value, name in root.items() if abs(factor / value - 1) <= _NEAR), "")
    number = f"{factor:.4g}{f' ({words})' if words else ''}, where d_model is {width}"
    raise Mismatch(f"the row of each token times {number}, not times sqrt(d_model) or 1")


def _sines(plain: Tensor) -> dict[str, Value]:
    """Return the options of a table (L, D) that no parameter holds."""
    length, width = plain.shape
    factors = {}
    for option in CHOICES["positional_encoding"].options:
        choices = Choices(positional_encoding=option.name)
        if option.name == "none" or learned_positions(choices):
            continue
        for first in _OFFSETS:
            every = torch.from_numpy(table(Setting(choices=choices), length + first, width))
            wanted = every[first:]
            if is_near(plain, wanted):
                return {"positional_encoding": option.name, **_offset(first)}
            if not first and (factor := _factor(plain, wanted)):
                factors[option.name] = factor
    for name, factor in factors.items():
        raise OtherPositions(f"the sum with the table of {name} sines times {factor:.4g}")
    raise OtherPositions(
        f"the sum with a table of positions that no option of positional_encoding has: its row 1 "
        f"begins with {_numbers(plain[1])}, and that of Vaswani et al. 2017 with "
        f"{_numbers(_paper(length, width)[1])}; row 0 with {_numbers(plain[0])}, and 0, 1, 0, 1"
    )


def _paper(length: int, width: int) -> Tensor:
    return torch.from_numpy(table(Setting(choices=Choices()), length, width))


def _numbers(row: Tensor) -> str:
    return ", ".join(f"{float(one):.3g}" for one in row[:4])


def _offset(first: int) -> dict[str, Value]:
    return {"position_offset": float(first)} if first else {}


def _rows(name: str, own: Tensor, added: Tensor) -> list[dict[str, Value]]:
    """Return the options of what a table adds by position, [] for that of a segment."""
    rows = own.reshape(-1, own.shape[-1]).double()
    if any(is_near(added, row.expand_as(added)) for row in rows):
        if len(rows) < POSITIONS and "pos" not in name.lower():
            return []
        raise Mismatch(f"the sum with one row of {name} for all positions")
    width = rows.shape[-1]
    for first in range(len(rows) - len(added) + 1):
        wanted = rows[first : first + len(added)]
        for option, factor in (("learned", 1.0), ("learned-scaled", width**-0.5)):
            if is_near(added, factor * wanted):
                return [{"positional_encoding": option, **_offset(first)}]
        if (other := _factor(added, wanted)) is not None:
            raise Mismatch(f"the sum with the rows of {name} times {other:.4g}, not as they are")
    raise Mismatch(f"the sum with rows of {name} that are not those of the positions in order")
