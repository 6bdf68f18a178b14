"""Finds the parameter map of a module: structure first, then names and shapes, then the numbers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from typing import Any

from torch import nn

from attentest.targets.adapt.parameters import telling
from attentest.targets.adapt.parameters.behaviour import Run, observe
from attentest.targets.adapt.parameters.building import DISTINCT, SQUARE, built, inner_widths
from attentest.targets.adapt.parameters.head_order import (
    attention_tables,
    narrowed,
    roles,
    rotates,
    rotates_at,
)
from attentest.targets.adapt.parameters.interleaved import (
    holds_at_other_sizes,
    interleaved_parts,
    other_sizes,
)
from attentest.targets.adapt.parameters.layers import (
    NO_LISTS,
    Lost,
    Part,
    agreeing,
    layer_parts,
    leaf_part,
)
from attentest.targets.adapt.parameters.leaves import is_of_heads
from attentest.targets.adapt.parameters.mixtures import mixture_part
from attentest.targets.adapt.parameters.norm_kinds import LAYERED, norm_kind
from attentest.targets.adapt.parameters.settled import memory, settled
from attentest.targets.adapt.parameters.stacks import Layers, lone_biases, model_parts, stack_parts
from attentest.targets.adapt.parameters.storage import Entries, as_place, simple, with_given
from attentest.targets.adapt.parameters.trials.clock import Clock
from attentest.targets.adapt.parameters.trials.mistaken import Mistakes
from attentest.targets.adapt.parameters.trials.samples import part_samples
from attentest.targets.adapt.parameters.trials.shown import rounded_positions, shown_by_parts
from attentest.targets.adapt.parameters.trials.stages import home, watched
from attentest.targets.adapt.parameters.trials.trial import fitting, places, read
from attentest.targets.adapt.parameters.units import units
from attentest_spec import Choices, Sizes
from attentest_spec.choices import Value
from attentest_spec.components import inside
from attentest_spec.mapping import Table
from attentest_spec.parameters import shapes

SECONDS, OF_MODELS, BRIEFLY = 2.0, 5, 0.5
"""Time for the numbers, how many times as long for a model, and the time where a part is wrong."""

MOST = 1000
"""Number of maps of a whole component that are tried."""


@dataclass(frozen=True)
class Observed:
    """A module that was built and called in a search, and what was seen of it."""

    module: nn.Module
    sizes: Sizes
    run: Run


@dataclass(frozen=True)
class FoundTable:
    """The parameter map that was found.

    `table` is what a recipe takes, `lines` the same as Python to paste, `remarks` what there is to
    say about it in sentences, and `choices` what the shapes decide. An empty table has a remark
    that says why. `doubts` are reasons why the table may be another one, unless the numbers fit,
    `unplaced` the module's own parameters that it leaves out; `observed` is what was searched, None
    where nothing could be built. `interleaved` says that the heads of its attention are, `cut` that
    time was up before an assignment fitted; `idle` are sentences on norms that are not called.
    `mistake` is the one of the catalogue that gives the numbers under the `choices`, "" for none.
    """

    table: Table = field(default_factory=dict)
    lines: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    choices: Mapping[str, Value] = field(default_factory=dict)
    doubts: Sequence[str] = ()
    unplaced: Sequence[str] = ()
    observed: Observed | None = None
    interleaved: bool = False
    cut: bool = False
    idle: tuple[str, ...] = ()
    mistake: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """The map as lines for the user, and its remarks."""
        head = ("parameters:",) if self.table else ()
        return (*head, *(f"  {line}" for line in self.lines if head), *self.remarks)


def find_table(
    build: Callable[[Sizes], nn.Module],
    component: str,
    call: Callable[..., Any],
    settled_places: Mapping[str, str] | None = None,
    wanted: Sizes = DISTINCT,
) -> FoundTable:
    """Find which parameter of the module that `build` makes at `wanted` is which of `component`.

    `call` takes the inputs of the contract too, `settled_places` are entries of the user. Names,
    shapes and the oracle decide. Raises nothing.
    """
    first = _searched(build, component, call, settled_places or {}, wanted)
    if first.table or "feed_forward" not in inside(component) or (seen := first.observed) is None:
        return first
    for width in inner_widths(seen.module, seen.sizes):  # code that takes no inner width has one
        found = _searched(build, component, call, settled_places or {}, wanted.but(d_ff=width))
        if found.table:  # the shapes of square matrices say nothing of what they are
            return replace(found, doubts=(*found.doubts, *[SQUARE] * (width == wanted.d_model)))
        if any(NO_LISTS in one for one in first.remarks):  # else it says what its layers lack
            first = replace(found, observed=seen)
    return first


def _searched(
    build: Callable[[Sizes], nn.Module],
    component: str,
    call: Callable[..., Any],
    given: Mapping[str, str],
    wanted: Sizes,
) -> FoundTable:
    try:
        module, sizes = built(build, wanted)
    except Lost as lost:
        return _lost(lost)
    search = _Search(module, component, call, sizes, given)
    observed = Observed(module, sizes, search.run)
    try:
        found = search.found()
    except Lost as lost:
        return replace(_lost(lost), observed=observed)
    if not search.fits:
        found = _with_order_of_heads(search, observed, found, build, call)
    return replace(found, observed=observed)


def _with_order_of_heads(
    search: "_Search",
    seen: Observed,
    found: FoundTable,
    build: Callable[[Sizes], nn.Module],
    call: Callable[..., Any],
) -> FoundTable:
    """Return the table with heads in another order, where that gives the numbers or rotates."""
    component, sizes = search.component, seen.sizes
    other = search.interleaved()
    if other and holds_at_other_sizes(build, component, call, other.table, sizes, SECONDS):
        return other

    def rotates_everywhere(table: Table) -> bool:
        return rotates(seen.module, component, call, table, seen.run, sizes) and all(
            rotates_at(build, component, call, table, one) for one in other_sizes(sizes)
        )

    return search.rotating(found, rotates_everywhere) or found


def _lost(lost: Lost) -> FoundTable:
    return FoundTable(remarks=(f"No parameter map: {lost}.",), doubts=(str(lost),))


class _Search:
    """One search for a table."""

    def __init__(
        self,
        module: nn.Module,
        component: str,
        call: Callable[..., Any],
        sizes: Sizes,
        given: Mapping[str, str],
    ) -> None:
        self.component = component
        self.given = given
        self.sizes = sizes
        self.units = units(module, sizes.heads)
        self.run: Run = observe(module, call, component, sizes)
        self.kind = norm_kind(module, self.run, self.units)
        self.seconds = SECONDS * (OF_MODELS if component == "model" else 1)
        self.clock = Clock(self.seconds)
        self.mistakes = Mistakes(self.run, sizes, self._decided)
        self.remarks: list[str] = []
        self.doubts: list[str] = []
        self.unplaced: list[str] = []
        self.lists: dict[str, Layers] = {}
        self.fits = self.misses = False

    def found(self) -> FoundTable:
        """Return the table; Lost where a part of the component is not there."""
        return self._found(self._parts())

    def interleaved(self) -> FoundTable | None:
        """Return the table with interleaved heads that gives the numbers, None for none."""
        slices = self._parts()
        parts = interleaved_parts(slices, self.sizes) if self.run.samples else []
        if not parts or self.given:
            return None
        self.clock, self.remarks, self.doubts = Clock(self.seconds), [], []
        if self._attends_by_slices(slices):
            return None
        found = self._found(parts)
        return replace(found, interleaved=True) if self.fits else None

    def rotating(self, found: FoundTable, rotates: Callable[[Table], bool]) -> FoundTable | None:
        """Return the first table whose heads can be rotated, None where `found` has such heads."""
        is_open = not self.given and self.run.samples and not self.clock.ran_out
        if not is_open or rotates(found.table):
            return None
        slices = self._parts()
        for parts in (slices, interleaved_parts(slices, self.sizes)):
            for tables in attention_tables(parts) if parts else ():
                whole = self._whole(parts, tables)
                if roles(whole) == roles(found.table) and rotates(whole):
                    self.clock, self.remarks, self.doubts = Clock(self.seconds), [], []
                    table = self._found(narrowed(parts, tables))
                    return replace(table, interleaved=parts is not slices)
        return None

    def _found(self, parts: list[Part]) -> FoundTable:
        self.run.stages = watched(self.component, parts, self.lists, self.run, self.sizes)
        table = self._named_otherwise(parts, self._chosen(parts))
        table = with_given(table, self.given)
        decided = self._decided(self.component, table)
        choices = {**decided, **self._shown(parts, table, Choices.of(decided))}
        self.remarks += [*telling.packed(table), *self._unmapped(table, choices)]
        if self.clock.ran_out:
            self.remarks.append(f"The numbers were asked for {self.clock.seconds:g} seconds.")
        made = FoundTable(table, telling.lines(table), tuple(self.remarks), choices, self.doubts)
        return replace(made, unplaced=self.unplaced, cut=self.clock.ran_out and not self.fits)

    def _shown(self, parts: list[Part], table: Table, decided: Choices) -> Mapping[str, Value]:
        found = places(self.component, table, self.run.own, self.sizes, decided)
        own = read(found, self.run.own, self.sizes)
        if self.fits:
            return rounded_positions(self.run.stages, own, self.sizes, decided)
        return shown_by_parts(self.component, parts, self.lists, self.run, own, self.sizes, decided)

    def _parts(self) -> list[Part]:
        usable = [
            unit
            for unit in self.units
            if unit.kind != "norm" or max(unit.shape, default=0) == self.sizes.d_model
        ]
        match self.component:
            case "encoder_layer" | "decoder_layer":
                return layer_parts(self.component, usable, self.sizes, self.run)
            case "encoder" | "decoder":
                parts, self.lists = stack_parts(self.component, usable, self.sizes, self.run)
            case "mixture_of_experts":
                return [mixture_part(self.units, self.sizes)]
            case "model":
                held = [*usable, *lone_biases(self.units, self.sizes)]
                parts, self.lists = model_parts(held, self.sizes, self.run)
            case "multi_head_attention":
                held = [one for one in self.units if one in usable or is_of_heads(one, self.sizes)]
                return [leaf_part("", self.component, held, self.sizes)]
            case _:
                return [leaf_part("", self.component, usable, self.sizes)]
        return parts

    def _chosen(self, parts: list[Part]) -> list[Entries]:
        """Return one table for every part: the only one, or the one that the numbers choose."""
        self.misses = False
        parts = [agreeing(part, self.given) for part in parts]
        options = [self._narrowed(part, parts) for part in parts]
        if all(len(tables) == 1 for tables in options):
            return [tables[0] for tables in options]
        if self.misses:  # a whole with a wrong part has wrong numbers too
            self.clock = Clock(BRIEFLY)
        several = list(islice(product(*options), MOST))
        together = [self._whole(parts, list(chosen)) for chosen in several]
        fits = self._fitting(self.component, together, self.run.samples)
        alone = parts[0] if len(parts) == 1 and not fits else None
        if alone and (only := self._under_a_mistake(alone, self.run.samples)):
            return only
        taken = list(several[together.index(fits[0])] if fits else several[0])
        unclear = [number for number, tables in enumerate(options) if len(tables) > 1]
        self._say([parts[n] for n in unclear], [taken[n] for n in unclear], len(fits))
        return taken

    def _named_otherwise(self, parts: list[Part], chosen: list[Entries]) -> Entries:
        """Return the table of the `chosen`, or one against the names where the numbers show it.

        Norms are alike, and the numbers alone say which is which. A projection with a name that
        is used for another one is a mistake: it is reported, and the names stay.
        """
        table = self._whole(parts, chosen)
        samples = self.run.samples
        self.fits = bool(samples and self._fitting(self.component, [table], samples))
        if self.given or not samples or self.fits:
            return table
        norms = [
            [one, *part.strange] if not part.component else [one]
            for part, one in zip(parts, chosen, strict=True)
        ]
        for tables in islice(product(*norms), 1, MOST):
            other = self._whole(parts, list(tables))
            if self._fitting(self.component, [other], samples):
                changed = [new for new, old in zip(tables, chosen, strict=True) if new != old]
                self.remarks.append(telling.norms_by_numbers(changed))
                self.fits = True
                return other
        for number, part in enumerate(parts):
            for strange in part.strange if part.component else ():
                other = self._whole(parts, [*chosen[:number], strange, *chosen[number + 1 :]])
                if self._fitting(self.component, [other], samples):
                    self.remarks.append(telling.against_names(part.slot, chosen[number], strange))
                    return table
        return table

    def _narrowed(self, part: Part, parts: list[Part]) -> Sequence[Entries]:
        """Return the tables that the numbers of the part alone leave, where it can be watched."""
        if len(part.tables) == 1 or not part.component or len(parts) == 1:
            return part.tables
        fits = self._fitting_alone(part, parts)
        if fits:
            self._say([part], fits[:1], len(fits))
            return fits[:1]
        samples = part_samples(part.component, home(part, parts, self.run))
        return self._under_a_mistake(part, samples) or part.tables

    def _fitting_alone(self, part: Part, parts: list[Part]) -> list[Any]:
        """Return the tables that give the numbers of the module of `part`; [] for none of its own.

        Such a module holds nothing of the other `parts`.
        """
        samples = part_samples(part.component, home(part, parts, self.run))
        fits = self._fitting(part.component, list(part.tables), samples)
        self.misses |= bool(samples) and not fits
        return fits

    def _under_a_mistake(self, part: Part, samples: Sequence[Any]) -> list[Any]:
        """Return the only table of attention under which a known mistake gives the numbers."""
        if self.clock.ran_out:  # the right one may not have been tried
            return []
        found = self.mistakes.only_table(part.component, part.tables, samples)
        if found:
            self.remarks.append(telling.by_a_mistake(part.slot or part.component, found))
        return found

    def _attends_by_slices(self, parts: list[Part]) -> bool:
        """Say whether each attention of a whole gives its own numbers with heads as slices."""
        attentions = [part for part in parts if part.component == "multi_head_attention"]
        return len(parts) > 1 and all(self._fitting_alone(part, parts) for part in attentions)

    def _fitting(
        self, component: str, tables: Sequence[Table], samples: Sequence[Any]
    ) -> list[Any]:
        fits: list[Any] = []
        for gated in (True, False):  # other parameters, and so other choices
            alike = [one for one in tables if any("gate" in n.split(".") for n in one) == gated]
            if alike:
                decided = Choices.of(self._decided(component, alike[0]))
                asked = self.run, self.sizes, decided, self.clock
                fits += fitting(component, alike, list(samples), *asked)
        return fits

    def _decided(self, component: str, table: Table) -> dict[str, Value]:
        kind = self.kind if component in LAYERED else ""
        return settled(component, table, self.run.own, self.sizes, kind, self.run.fired)

    def _say(self, parts: list[Part], tables: Sequence[Entries], fits: int) -> None:
        """Say how the `tables` of `parts` were taken out of several, of which `fits` fitted."""
        about = ", ".join(part.slot or self.component for part in parts)
        if not fits:
            self.doubts.append(f"no assignment of {about} reproduces the formula")
        self.remarks.append(
            f"{about}: {telling.how_taken(fits, self.run.failure)}: {telling.spoken(tables)}."
        )

    def _whole(self, parts: list[Part], tables: list[Entries]) -> Entries:
        whole: Entries = {}
        for part, table in zip(parts, tables, strict=True):
            whole |= part.placed(table)
        for canonical, layers in self.lists.items():
            whole = layers.starred(canonical, whole)
        return {name: simple(as_place(entry)) for name, entry in whole.items()}

    def _unmapped(self, table: Table, choices: Mapping[str, Value]) -> Iterator[str]:
        """Yield what there is to say of parameters that only one of the two sides has."""
        own, wanted = self.run.own, shapes(self.component, self.sizes, Choices.of(choices))
        found = places(self.component, table, own, self.sizes, Choices.of(choices))
        yield from telling.untold([name for name in wanted if name not in found])
        used = {name for place in found.values() for name in place.names(own)}
        mapped = {memory(own[name]) for name in used}
        fixed = own.keys() - self.run.trained if self.run.trained else set()
        rest = [name for name in own if memory(own[name]) not in mapped and name not in fixed]
        self.unplaced = rest
        weights = [one for one in wanted if one not in found and one.endswith((".weight", "gain"))]
        self.doubts += [f"nothing was found for {telling.few(weights)}"] * bool(weights)
        yield from telling.left_over(rest)
