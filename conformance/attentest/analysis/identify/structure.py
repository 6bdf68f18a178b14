"""Measurement of the choices that parameters show: their names, shapes and ties."""

import sys
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from attentest.harness.errors import Absent, BackendError, Violation
from attentest.harness.subject import Probe, Subject
from attentest_spec import Backend, Choices, Sizes
from attentest_spec.choices import Value
from attentest_spec.parameters import count, draw, shapes, tied
from attentest_spec.setting import Array

Partition = frozenset[frozenset[str]]

SHAPED: Mapping[str, tuple[str, ...]] = {
    "head_width": ("d/h", "d"),
    "key_heads": ("as-queries", "fewer"),
    "feed_forward_gate": ("none", "gated"),
    "router_bias": ("none", "in-scores"),
    "shared_expert": ("none", "added", "gated"),
    "rms_weight": ("none", "weight"),
    "rms_bias": ("none", "present"),
    "norm_bias": ("none", "present"),
    "feed_forward_bias": ("none", "present"),
    "generator_bias": ("none", "present"),
    "projection_bias": ("none", "output-alone", "all-but-output", "all-but-key", "present"),
    "final_norm": ("none", "present"),
    "embedding_norm": ("none", "present"),
    "positional_encoding": ("none", "learned"),  # the fixed tables hold no parameters
}
"""Choices that decide which parameters there are, and the options that differ in them.

The options stand in the order of what they need, but for the width of heads, where both need as
many. A learned table comes at each of :data:`OFFSETS`, whose rows it has too.
"""

OFFSETS: tuple[Value, ...] = ("none", 1.0, 2.0, 3.0)
"""The rows of a first position that are tried."""

TIED: Mapping[str, tuple[str, ...]] = {
    "norm_sharing": ("separate", "shared"),
    "tying": ("none", "target-and-output", "embeddings", "all-three"),
}
"""Choices that decide which parameters are one, from the least tied."""


WEIGHTED = ("per-head", "whole-projection")
"""The norms of queries and keys that have weights."""


def has_buckets(choices: Choices) -> bool:
    """Say whether distances have trained numbers, which are parameters of attention."""
    return choices.relative_bias.startswith("buckets")


def asking(backend: Backend, choices: Choices) -> Backend:
    """Return `backend` as if it declared `choices`, so that it takes their parameters.

    The torch adapter asks the declaration which parameters a part has, and never how to compute.
    Any other backend knows its own parameters, and is left as it is.
    """
    glue = sys.modules.get("attentest_spec.torch")
    if glue is not None and isinstance(backend, glue.TorchBackend):
        asked: Backend = replace(backend, choices=choices.as_dict())
        return asked
    return backend


def structures(subject: Subject, component: str, sizes: Sizes) -> Iterator[tuple[Choices, Probe]]:
    """Yield the structures that `component` takes, most parameters and fewest ties first.

    A part that takes more than a declaration says must be given all of it: what is not loaded
    stays as it was born, and hides. Raises the last refusal where nothing is taken.
    """
    declared = Choices.of(subject.backend.choices)
    _demand_build(subject, component, sizes)
    builder = _Builder(subject, component, sizes)
    last = Choices()
    starts = [*_declared_starts(component, declared), Choices()]
    grown = (one for start in starts for one in _grown(builder, start))
    for candidates in (grown, _untied(builder), _tied(builder)):
        found = False
        for last in candidates:
            if builder.takes(last):
                found = True
                yield last, builder.probe
        if found:
            return
    builder.built(last)
    raise Absent("no structure was taken")


class _Builder:
    """Builds a component in one structure after the other."""

    def __init__(self, subject: Subject, component: str, sizes: Sizes) -> None:
        self.subject, self.component, self.sizes = subject, component, sizes
        self.probe: Probe
        self._parts: dict[str, Any] = {}
        self._shapes: dict[tuple[str, str], tuple[int, ...] | None] = {}

    def takes(self, choices: Choices) -> bool:
        """Say whether a part takes the parameters of a structure: it is `probe` then."""
        if not self.may_take(choices):
            return False
        try:
            self.probe = self.built(choices)
        except (Absent, BackendError, Violation):
            return False
        return True

    def built(self, choices: Choices) -> Probe:
        """Build a part and load different parameters, or raise what it raises."""
        drawn = draw(self.component, self.sizes, choices, np.random.default_rng(5), decimals=6)
        self._ask_for(choices)
        return self.subject.part(self.component, self.sizes, parameters=drawn or None)

    def _ask_for(self, choices: Choices) -> None:
        self.subject.begin()
        self.subject.backend = asking(self.subject.backend, choices)

    def may_take(self, choices: Choices) -> bool:
        """Say whether a part may have the parameters of a structure, in their shapes.

        One part is asked about every parameter, where it can be: there are thousands of structures.
        """
        wanted = shapes(self.component, self.sizes, choices)
        return all(self._shape(choices, one) in (shape, None) for one, shape in wanted.items())

    def _shape(self, choices: Choices, name: str) -> tuple[int, ...] | None:
        """Return the shape of a parameter in a part, () for none and None where nothing tells."""
        key = choices.key_heads, name
        if key not in self._shapes:
            self._shapes[key] = _asked(self._part(choices), name)
        return self._shapes[key]

    def _part(self, choices: Choices) -> Any:
        """Return a part that has nothing loaded, None where it cannot be built."""
        if choices.key_heads not in self._parts:
            self._ask_for(choices)
            try:
                part = self.subject.part(self.component, self.sizes).part
            except (Absent, BackendError, Violation):
                part = None
            self._parts[choices.key_heads] = part
        return self._parts[choices.key_heads]


def _asked(part: Any, name: str) -> tuple[int, ...] | None:
    """Return the shape that a part tells, () for no such parameter, None where it cannot tell."""
    if not hasattr(type(part), "parameter_shape"):  # a part may answer to any name by itself
        return None
    try:
        found: tuple[int, ...] = part.parameter_shape(name)
    except (KeyError, ValueError):
        return ()
    except Exception:  # a map may be wrong in any way, which loading reports
        return None
    return found


def _declared_starts(component: str, declared: Choices) -> list[Choices]:
    """Return the parameters inside attention that are declared and that not all of it has.

    These are a trained score of nothing for each head, one for each distance and head, and the
    weights of norms of its projections.
    """
    names = ("attention_sink", "query_key_norm", "rms_bias", "relative_bias")
    changes = {name: declared[name] for name in names if declared[name] != Choices()[name]}
    weighted = declared.query_key_norm in WEIGHTED
    sink = declared.attention_sink == "per-head"
    biased = has_buckets(declared)
    is_there = component == "multi_head_attention" and (weighted or sink or biased)
    return [Choices().but(**changes)] * is_there


def _demand_build(subject: Subject, component: str, sizes: Sizes) -> None:
    """Raise what building raises: what cannot be built takes none of thousands of structures.

    Of all structures, a build knows the number of heads of keys and values alone.
    """
    for heads in SHAPED["key_heads"]:
        subject.begin()
        subject.backend = asking(subject.backend, Choices(key_heads=heads))
        try:
            subject.part(component, sizes)
        except (Absent, BackendError, Violation) as failure:
            refusal = failure
        else:
            return
    raise refusal


def _grown(builder: _Builder, start: Choices) -> Iterator[Choices]:
    """Yield the fullest structure from `start` on, found parameter by parameter, if there is one.

    Works for parts that leave alone what they are not given, as the torch adapter does.
    """
    fewest = start.but(tying="none").but(**{axis: options[0] for axis, options in SHAPED.items()})
    if start.query_key_norm in WEIGHTED:  # whose weights are those of RMS norms
        fewest = fewest.but(rms_weight="weight", rms_bias=start.rms_bias)
    bare = [fewest.but(head_width=width) for width in SHAPED["head_width"]]
    full = next((one for one in bare if builder.takes(one)), None)
    if full is None:
        return
    for axis in _relevant(builder.component):
        for more in _shaped(axis)[1:] if axis != "head_width" else ():
            if builder.takes(full.but(**more)):
                full = full.but(**more)
    yield full


def _untied(builder: _Builder) -> Iterator[Choices]:
    """Yield every set of shapes once, with no two parameters the same, the fullest first."""
    loose = Choices(norm_sharing="separate", tying="none")
    sets = product(*(_shaped(axis) for axis in _relevant(builder.component)))
    shaped = [loose.but(**dict(ChainMap(*changes))) for changes in sets]
    left = filter(builder.may_take, shaped)
    yield from sorted(left, key=lambda one: -count(builder.component, builder.sizes, one))


@cache
def _relevant(component: str) -> list[str]:
    return [axis for axis in SHAPED if _differ(component, axis)]


def _shaped(axis: str) -> list[dict[str, Value]]:
    """Return what each option of `axis` changes; a learned table comes at every offset."""
    first, *rest = SHAPED[axis]
    if axis != "positional_encoding":
        return [{axis: option} for option in SHAPED[axis]]
    return [{axis: first}, *({axis: rest[0], "position_offset": one} for one in OFFSETS)]


def _tied(builder: _Builder) -> Iterator[Choices]:
    """Yield the sets of shapes for parts that refuse different values for tied parameters."""
    untied = list(_untied(builder))
    for sharing, tying in list(product(*TIED.values()))[1:]:
        for one in untied:
            choices = one.but(norm_sharing=sharing, tying=tying)
            if tied(builder.component, builder.sizes, choices):
                yield choices


def _differ(component: str, axis: str) -> bool:
    sizes = Sizes(kv_heads=1)
    tables = [shapes(component, sizes, Choices().but(**{axis: v})) for v in SHAPED[axis]]
    return any(table != tables[0] for table in tables)


def ties(probe: Probe, choices: Choices) -> dict[str, str | None]:
    """Return, for the choices about tied parameters, the option that the part shows.

    It was loaded with different values; those that it exports as equal are one. None stands for
    parameters that are one in no listed way.
    """
    if not probe.parameters:
        return {}
    exported = probe.do("exporting the parameters", lambda part: part.export())
    found = {}
    for axis in TIED:
        options = _partitions(probe, choices, axis)
        if len(set(options.values())) < 2:
            continue
        names = frozenset().union(*next(iter(options.values())))
        shown = _partition({name: _content(exported, name) for name in names})
        found[axis] = next((name for name, one in options.items() if one == shown), None)
    return found


def _partitions(probe: Probe, choices: Choices, axis: str) -> dict[str, Partition]:
    """Return which parameters are one under each option, among those that any option ties."""
    loose = {name: "none" if name == "tying" else "separate" for name in TIED}
    twins = {
        option: tied(probe.component, probe.sizes, choices.but(**{**loose, axis: option}))
        for option in TIED[axis]
    }
    names = {name for one in twins.values() for pair in one.items() for name in pair}
    return {
        option: _partition({name: one.get(name, name) for name in names})
        for option, one in twins.items()
    }


def _partition(marks: Mapping[str, object]) -> Partition:
    groups: dict[object, set[str]] = {}
    for name, mark in marks.items():
        groups.setdefault(mark, set()).add(name)
    return frozenset(frozenset(group) for group in groups.values())


def _content(exported: Mapping[str, Array], name: str) -> object:
    """Return what two parameters have in common when they hold the same numbers."""
    values = exported.get(name)
    return name if values is None else (values.shape, values.tobytes())
