"""Layers whose norms or residual connections are those of a design that the spec does not have."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from torch import nn

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import EPSILON
from attentest.targets.adapt.parameters.behaviour import Fired
from attentest.targets.adapt.parameters.found import FoundTable, Observed
from attentest.targets.adapt.parameters.norm_kinds import is_rms
from attentest.targets.adapt.parameters.settled import memory
from attentest.targets.adapt.parameters.trials.open_choices import EXACT, LOOSE
from attentest.targets.adapt.parameters.units import units
from attentest_spec.mapping import locate
from attentest_spec.setting import Floats

LAYERS = ("encoder_layer", "decoder_layer")

_SUMS = (*LAYERS, "residual")
STACKS = ("encoder", "decoder")
_BY_LAYER = (
    "it has one norm for all sublayers of a layer, and the spec has one for each sublayer, or one "
    "for a whole stack: name the class of a layer, which is judged alone"
)
_ALONE = "which is judged in a whole decoder-only model alone. Its parts can be judged one by one"


def of_norms(seen: Observed, component: str) -> str:
    """Return how the norms of a layer or a stack differ from those of the spec, "" for nothing.

    They are of two kinds, or those of a layer, or of a residual connection by itself, norm what a
    sublayer returns before it is added.
    """
    if component not in (*_SUMS, *STACKS) or not seen.run.samples:
        return ""
    if (other := of_two_kinds(seen, component)) or component not in _SUMS:
        return other
    if behind := _of_paths_behind(seen, component):
        return behind
    norms = _norms(seen)
    sample = seen.run.samples[0]
    x, added = np.asarray(sample.inputs[0]), [one.output for one in norms]
    if len(added) < 1 + (component in LAYERS) or any(one.shape != x.shape for one in added):
        return ""
    if not _is_near(sample.output, x + np.sum(added, axis=0)):
        return ""
    names = " and ".join(one.path for one in norms)
    verb = "norms" if len(norms) == 1 else "norm"
    return f"{names} {verb} what a sublayer returns before it is added, {_ALONE}"


def _of_paths_behind(seen: Observed, component: str) -> str:
    """Return that the paths around sublayers begin behind RMS norms, "" where they do not."""
    sample, held = seen.run.samples[0], dict(seen.module.named_modules())
    norms = [one for one in seen.run.fired if one.path and _is_gain(held[one.path])]
    if component not in LAYERS or not norms or not all(map(is_rms, norms)):
        return ""
    if not np.array_equal(norms[0].inputs[0], np.asarray(sample.inputs[0])):
        return ""
    paths = {one.path for one in norms}
    sublayers = [one.output for one in seen.run.fired if one.path and one.path not in paths]
    ends = [*(one.inputs[0] for one in norms[1:]), sample.output]
    for norm, end in zip(norms, ends, strict=True):
        sums = (norm.output + one for one in sublayers if one.shape == norm.output.shape)
        if not any(_is_near(one, end) for one in sums):
            return ""
    return _BEHIND.format(" and ".join(one.path for one in norms))


def _is_gain(module: nn.Module) -> bool:
    """Say whether a module holds one parameter, a vector, as an RMS norm does."""
    return [one.dim() for one in module.parameters()] == [1]


_BEHIND = (
    "it adds what each sublayer returns to the output of {}, and not to its own input: that is a "
    "mistake, or a layer whose norms are those of the sums before them, as that of the layer before"
)


def of_stack(found: FoundTable, component: str) -> str:
    """Return how the norms of layers differ from each other in what the spec has once, "" for none.

    They have two epsilons, which a loose comparison does not show, or each layer has one norm for
    all of its sublayers.
    """
    seen = found.observed
    if seen is None or component not in (*LAYERS, *STACKS):
        return ""
    if other := _of_two_epsilons(seen):
        return other
    return _BY_LAYER if has_norms_by_layer(found, component) else ""


def has_norms_by_layer(found: FoundTable, component: str) -> bool:
    """Say whether each layer of a stack has one norm for all of its sublayers."""
    shared = component in STACKS and found.choices.get("norm_sharing") == "shared"
    if found.observed is None or not shared or found.unplaced:  # other norms may be left out
        return False
    return _differ_by_layer(found, found.observed)


def epsilons_of(seen: Observed) -> dict[tuple[str, str], float]:
    """Return the epsilons of all norms by path and attribute, {} where they are not of one kind.

    They are {} too where one holds no number that is its epsilon, and where all are the same.
    """
    norms, held = _norms(seen), dict[tuple[str, str], float]()
    for one in norms:
        own = vars(seen.module.get_submodule(one.path))
        named = [name for name in own if squashed(name) in EPSILON]
        if len(named) != 1 or not isinstance(own[named[0]], float):
            return {}
        held[one.path, named[0]] = own[named[0]]
    is_one_kind = len({is_rms(one) for one in norms}) == 1
    return held if is_one_kind and len(set(held.values())) > 1 else {}


class Weights(NamedTuple):
    """The factors of a residual connection that weighs its two paths."""

    of_sublayer: float
    of_input: float

    @property
    def keep_input(self) -> bool:
        """Whether what a sublayer returns is weighed alone."""
        return abs(self.of_input - 1) <= LOOSE

    @property
    def words(self) -> str:
        """The factors in words."""
        return (
            f"its residual connection adds {self.of_sublayer:.3g} times what a sublayer returns "
            f"to {self.of_input:.3g} times its input"
        )


def of_sums(seen: Observed, component: str) -> Weights | None:
    """Return the factors of a residual connection that weighs its paths, None for 1 and 1."""
    if component not in (*LAYERS, *STACKS) or not seen.run.samples:
        return None
    sample = seen.run.samples[0]
    norms = _norms(seen)
    paths = {one.path for one in norms}
    sublayers = [one.output for one in seen.run.fired if one.path and one.path not in paths]
    starts = [np.asarray(sample.inputs[0]), *(one.output for one in norms)]
    for end in (*_entered(seen, paths), sample.output):
        for start, branch in _pairs(starts, sublayers, end):
            columns = np.stack([start.ravel(), branch.ravel()], axis=1)
            shares, *_ = np.linalg.lstsq(columns, end.ravel(), rcond=None)
            # No design subtracts a path: it is a mistake, or an output of another layer.
            if shares.min() <= LOOSE or not _is_near(columns @ shares, end.ravel(), EXACT):
                continue
            if np.abs(shares - 1).max() > LOOSE:
                return Weights(float(shares[1]), float(shares[0]))
        starts.append(end)
    return None


def _norms(seen: Observed) -> list[Fired]:
    paths = [unit.path for unit in units(seen.module, seen.sizes.heads) if unit.kind == "norm"]
    return [one for one in seen.run.fired if one.path and one.path in paths]


def of_two_kinds(seen: Observed, component: str) -> str:
    """Name an RMS norm and another norm of one layer or stack, "" where all are of one kind."""
    norms = _norms(seen) if component in (*LAYERS, *STACKS) else []
    kinds = {type(seen.module.get_submodule(one.path)): is_rms(one) for one in norms}
    if len(kinds) < 2 or len(set(kinds.values())) < 2:
        return ""
    own, other = (
        next(one.path for one in norms if kinds[type(seen.module.get_submodule(one.path))] is rms)
        for rms in (True, False)
    )
    return f"{own} is an RMS norm and {other} is none: its norms are of two kinds"


def _of_two_epsilons(seen: Observed) -> str:
    """Name two norms of one kind, by their numbers, that hold different epsilons, "" for none."""
    of_kind: dict[bool, tuple[str, float]] = {}
    for one in _norms(seen):
        held = vars(seen.module.get_submodule(one.path))
        own = [value for name, value in held.items() if squashed(name) in EPSILON]
        if len(own) != 1 or not isinstance(own[0], float):
            continue
        path, epsilon = of_kind.setdefault(is_rms(one), (one.path, own[0]))
        if epsilon != own[0]:
            return (
                f"{one.path} has the epsilon {own[0]:g} and {path} has {epsilon:g}, and the spec "
                f"has one for all norms: give them one"
            )
    return ""


def _differ_by_layer(found: FoundTable, seen: Observed) -> bool:
    """Say whether the first two layers of a stack have different norms."""
    places = [locate(f"layers.{one}.self_attention_norm.gain", found.table) for one in (0, 1)]
    first, second = (seen.run.own.get(one.name) for one in places)
    return first is not None and second is not None and memory(first) != memory(second)


def _entered(seen: Observed, paths: set[str]) -> Iterator[Floats]:
    """Yield what the norms are given, in the order of their calls."""
    for path in seen.run.order:
        yield from (one.inputs[0] for one in seen.run.fired if one.path == path and path in paths)


def _pairs(
    starts: list[Floats], branches: list[Floats], end: Floats
) -> Iterator[tuple[Floats, Floats]]:
    for start in starts:
        for branch in branches:
            if not start.shape == branch.shape == end.shape or _is_near(start, end):
                continue
            if all(np.isfinite(one).all() for one in (start, branch, end)):
                yield start, branch


def _is_near(one: Floats, other: Floats, error: float = LOOSE) -> bool:
    return one.shape == other.shape and bool(
        np.abs(one - other).max() <= error * np.abs(other).max()
    )
