"""Takes a layer apart: which of its units are attention, feed-forward network and norms."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from attentest.targets.adapt.parameters.behaviour import Run
from attentest.targets.adapt.parameters.leaves import (
    leaf_tables,
    norm_entries,
    tables_against_names,
)
from attentest.targets.adapt.parameters.storage import Entries, agrees
from attentest.targets.adapt.parameters.trials.samples import part_samples
from attentest.targets.adapt.parameters.units import Unit, squeezed
from attentest.targets.adapt.parameters.words import (
    ATTENTION,
    CROSS,
    FEED,
    SELF,
    beyond,
    ordinal,
    projections,
    words,
)
from attentest_spec import Sizes
from attentest_spec.mapping import nested

NO_LISTS = "with parameters of their own"
"""Words of the reason of a search that finds no lists of layers at the sizes it is given."""


class Lost(Exception):
    """The structure of a module cannot be made out; its text says what was looked for."""


@dataclass(frozen=True)
class Part:
    """A part of a component, and the tables that it may have, the usual one first.

    `units` are those the tables are about; `component` is "" where no oracle stands for the part
    alone. The tables have the part's own canonical names; `slot` is what they stand under.
    `strange` are tables that its shapes allow and its names do not.
    """

    slot: str
    component: str
    tables: Sequence[Entries]
    units: Sequence[Unit]
    strange: Sequence[Entries] = ()

    def under(self, slot: str) -> "Part":
        """Return this part moved under `slot`."""
        joined = ".".join(name for name in (slot, self.slot) if name)
        return replace(self, slot=joined)

    def placed(self, table: Entries) -> Entries:
        """Return one of the tables with the names of the whole component."""
        return nested(self.slot, "", table)


def agreeing(part: Part, given: Mapping[str, str]) -> Part:
    """Return `part` with those tables alone that agree with the user's, if there are any."""
    first = {one.replace("*", "0"): own.replace("*", "0") for one, own in given.items()}
    names = part.placed(part.tables[0])
    about = {
        one: own for one, own in first.items() if any(f"{n}.".startswith(f"{one}.") for n in names)
    }
    found = [
        table
        for table in [*part.tables, *part.strange]
        if all(agrees(part.placed(table), one, own) for one, own in about.items())
    ]
    return replace(part, tables=found) if about and found else part


def leaf_part(slot: str, component: str, units: list[Unit], sizes: Sizes) -> Part:
    """Return the part that is a component without parts; Lost where no table fits."""
    tables = leaf_tables(component, units, sizes)
    if not tables:
        held = ", ".join(f"{unit.weight} {unit.shape}" for unit in units) or "nothing"
        narrow = {(sizes.d_model // max(sizes.heads, 1),) * 2}
        shared = {unit.shape for unit in units if unit.kind == "linear"} & narrow
        own = "; its projections are those of one head, shared by all heads" if shared else ""
        raise Lost(f"no {component.replace('_', ' ')} can be made out of {held}{own}")
    return Part(slot, component, tables, units, tables_against_names(component, units, sizes))


def layer_parts(component: str, units: list[Unit], sizes: Sizes, run: Run) -> list[Part]:
    """Return the parts of an encoder layer or a decoder layer; Lost where one is missing."""
    norms = [unit for unit in units if unit.kind == "norm"]
    feed = feeding(units, sizes)
    rest = [unit for unit in units if unit not in norms and unit not in feed]
    above = _above([unit.path for unit in units])
    slots = ["self_attention"] + ["cross_attention"] * (component == "decoder_layer")
    groups = [rest] if len(slots) == 1 else _two_attentions(rest, run, above)
    _demand_no_vectors(norms, rest, len(slots) + 1, above)
    return [
        *(
            leaf_part(slot, "multi_head_attention", group, sizes)
            for slot, group in zip(slots, groups, strict=True)
        ),
        leaf_part("feed_forward", "feed_forward", feed, sizes),
        _norms([f"{slot}_norm" for slot in (*slots, "feed_forward")], norms, run),
    ]


def _demand_no_vectors(norms: list[Unit], rest: list[Unit], wanted: int, above: str) -> None:
    """Raise Lost where vectors are no norms, but lie in the modules of attention, as `bias_k`."""
    inner = [
        norm
        for norm in norms
        if norm.path != above
        and any(one.path == norm.path or one.path.startswith(f"{norm.path}.") for one in rest)
    ]
    if inner and len(norms) - len(inner) == wanted:
        names = [name for one in inner for name in (one.weight, one.bias) if name]
        raise Lost(f"the spec has no place for {', '.join(names)}")


def is_feed(unit: Unit, sizes: Sizes) -> bool:
    """Say whether a unit is a matrix from or to the inner width, or to twice that with a gate."""
    return unit.kind != "norm" and bool({sizes.d_ff, 2 * sizes.d_ff} & {*squeezed(unit.shape)})


def feeding(units: list[Unit], sizes: Sizes) -> list[Unit]:
    """Return the matrices of the feed-forward network of a layer.

    Where the inner width is that of the model, they are the two that no name gives to attention.
    """
    if sizes.d_ff != sizes.d_model:
        return [unit for unit in units if is_feed(unit, sizes)]
    held = [unit for unit in units if unit.kind != "norm"]
    names = dict(zip(held, beyond([unit.path for unit in held]), strict=True))
    left = [
        unit
        for unit, name in names.items()
        if squeezed(unit.shape) == (sizes.d_model,) * 2
        and not ({*words(name)} & ATTENTION or projections(unit.path))
    ]
    return left if len(left) == _TWO < len(held) else []


_TWO = 2
"""The matrices of a feed-forward network without a gate."""


def _above(paths: list[str]) -> str:
    """Return the path of the module that all `paths` lie in."""
    rest = beyond(paths)
    return paths[0].removesuffix(rest[0]).rstrip(".") if paths else ""


def _two_attentions(units: list[Unit], run: Run, above: str) -> list[list[Unit]]:
    """Return the units of self-attention and those of attention to the memory."""
    names = dict(zip(units, beyond([unit.path for unit in units]), strict=True))
    firsts = list(dict.fromkeys(name.split(".")[0] for name in names.values()))
    if len(firsts) == 2:
        groups = [[u for u in units if names[u].split(".")[0] == one] for one in firsts]
        labels = firsts
    elif len(numbered := _by_number(units, names)) == 2:
        labels = [f"attention{number}" for number in numbered]
        groups = list(numbered.values())
    else:
        crossing = [unit for unit in units if CROSS & set(words(names[unit]))]
        groups = [[unit for unit in units if unit not in crossing], crossing]
        labels = ["self", "cross"]
    if not all(groups):
        held = ", ".join(firsts)
        if units and all(run.order.count(unit.path) > 1 for unit in units):
            raise Lost(
                f"two attentions were looked for, and {held} are called twice: one attention for "
                f"the target and for the memory is a design that the spec does not have"
            )
        raise Lost(f"two attentions were looked for, and there are {held or 'none'}")
    return groups if _self_first(labels, groups, run, above) else groups[::-1]


def _by_number(units: list[Unit], names: Mapping[Unit, str]) -> dict[str, list[Unit]]:
    """Return the units by the number that ends the first word of their names, {} if one has none.

    That is so where a layer holds the projections of its attentions itself (`w_q_1`, `w_q_2`).
    """
    found: dict[str, list[Unit]] = {}
    for unit in units:
        match = re.search(r"\d+$", names[unit].split(".")[0])
        if match is None:
            return {}
        found.setdefault(match[0], []).append(unit)
    return dict(sorted(found.items(), key=lambda item: int(item[0])))


def _self_first(labels: list[str], groups: list[list[Unit]], run: Run, above: str) -> bool:
    """Say whether the first group is self-attention: by name, by number, by what it is given."""
    crossing = [bool(CROSS & set(words(label))) for label in labels]
    if crossing[0] != crossing[1]:
        return crossing[1]
    own = [bool(SELF & set(words(label))) for label in labels]
    if own[0] != own[1]:
        return own[0]
    numbers = [ordinal(label) for label in labels]
    if all(written for _, written in numbers):
        return numbers <= numbers[::-1]
    for group, answer in ((groups[1], True), (groups[0], False)):
        sample = part_samples("multi_head_attention", run.home([u.path for u in group], above))
        if sample and sample[0].inputs[0] is not sample[0].inputs[1]:
            return answer
    return True


def _norms(slots: list[str], norms: list[Unit], run: Run) -> Part:
    """Return the norms of the sublayers: one for all, or one for each."""
    called = [unit for unit in norms if unit.path in run.order]
    if len(norms) > len(slots) == len(called):  # the others are those of parts that are off
        norms = called
    if len(norms) == 1:
        orders = [norms * len(slots)]
    elif len(norms) < len(slots):
        raise Lost(f"{len(slots)} norms were looked for, and there are {len(norms)}")
    else:
        orders = _norm_orders(slots, norms, run)
    tables = [_norm_table(slots, order) for order in orders]
    others = permutations(norms) if len(norms) == len(slots) else ()
    every = [_norm_table(slots, order) for order in others]
    return Part("", "", tables, norms, [one for one in every if one not in tables])


def _norm_table(slots: list[str], norms: Sequence[Unit]) -> Entries:
    return {
        name: place
        for slot, unit in zip(slots, norms, strict=True)
        for name, place in norm_entries(slot, unit).items()
    }


def _norm_orders(slots: list[str], norms: list[Unit], run: Run) -> list[list[Unit]]:
    """Return the orders the norms may stand in: by name, by number, by when they are called."""
    names = beyond([unit.path for unit in norms])
    said = _said(slots, names)
    if said:
        return [[norms[said.index(slot)] for slot in slots]]
    if len(norms) > len(slots):
        held = ", ".join(name or "weights of its own" for name in names)
        raise Lost(f"{len(slots)} norms were looked for, and there are {held}")
    numbers = [ordinal(name) for name in names]
    idle = 0 < sum(unit.path in run.order for unit in norms) < len(norms)
    counted = all(written or (idle and number is not None) for number, written in numbers)
    if counted and len(set(numbers)) == len(names):  # one that is not called has no time
        return [[norms[i] for i in sorted(range(len(norms)), key=lambda i: numbers[i])]]
    if in_place := _called_in_place(slots, norms, run):
        return [in_place]
    times = [run.when(unit.path) for unit in norms]
    if None not in times and len(set(times)) == len(times):
        return [[norms[i] for i in sorted(range(len(norms)), key=lambda i: times[i] or 0)]]
    return [list(order) for order in permutations(norms)]


def _called_in_place(slots: list[str], norms: list[Unit], run: Run) -> list[Unit]:
    """Return the norms in order, where one is called again in the place of one that is never.

    Nothing where it is otherwise.
    """
    held = {unit.path: unit for unit in norms}
    idle = [unit for unit in norms if unit.path not in run.order]
    calls = [path for path in run.order if path in held][: len(slots)]
    if len(idle) != 1 or len(calls) < len(slots) or len({*calls}) != len(slots) - 1:
        return []
    return [idle[0] if path in calls[:n] else held[path] for n, path in enumerate(calls)]


def _said(slots: list[str], names: list[str]) -> list[str]:
    """Return the slot that each name says; nothing unless every slot is said once.

    What one name leaves open is the slot that the others leave.
    """
    found = [next(_slot_words(name, slots), "") for name in names]
    left = [slot for slot in slots if slot not in found]
    if len(left) == 1 and found.count("") == 1:
        found[found.index("")] = left[0]
    return found if all(found.count(slot) == 1 for slot in slots) else []


def _slot_words(name: str, slots: list[str]) -> Iterator[str]:
    spoken = set(words(name))
    if spoken & {"post", "after"}:  # of this sublayer, or before the next: names do not tell
        return
    if spoken & FEED:
        yield "feed_forward_norm"
    if spoken & CROSS and "cross_attention_norm" in slots:
        yield "cross_attention_norm"
    if spoken & ATTENTION:
        yield "self_attention_norm"
