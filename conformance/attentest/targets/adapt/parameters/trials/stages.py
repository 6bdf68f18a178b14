"""Parts that are watched alone inside a whole: their numbers leave few of its choices open."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from attentest.targets.adapt.parameters.behaviour import Compute, Fired, Run, Sample, Stage
from attentest.targets.adapt.parameters.layers import Part
from attentest.targets.adapt.parameters.stacks import Layers
from attentest.targets.adapt.parameters.trials.open_choices import OPEN
from attentest.targets.adapt.parameters.trials.samples import batch_first, distinct, part_samples
from attentest_spec import Setting, Sizes
from attentest_spec.choices import Value
from attentest_spec.masks import padding_mask, target_mask
from attentest_spec.model import embed
from attentest_spec.oracles import ORACLES
from attentest_spec.setting import Array, Floats


def watched(
    component: str, parts: Sequence[Part], lists: Mapping[str, Layers], run: Run, sizes: Sizes
) -> list[Stage]:
    """Return the parts of a whole that were called as modules of their own, in the first call."""
    if not run.samples:
        return []
    inputs = run.samples[0].inputs
    match component:
        case "encoder_layer" | "decoder_layer":
            return [stage for part in parts for stage in _sublayer(part, parts, run)]
        case "encoder" | "decoder":
            masks = inputs[1 if component == "encoder" else 2 :]
            fired = _layer(lists[""], parts, run)
            return _of_layer(f"{component}_layer", "layers.0", fired, lambda _: masks, sizes)
        case "model":
            return _of_model(parts, lists, run, sizes)
        case _:
            return []


def _of_model(
    parts: Sequence[Part], lists: Mapping[str, Layers], run: Run, sizes: Sizes
) -> list[Stage]:
    """Return the embedding of each side, and the first layer of each stack."""
    source, target = (one for one in run.samples[0].inputs if one is not None)
    encoding, decoding = (_layer(lists[one], parts, run) for one in ("encoder.", "decoder."))

    def hidden(given: Setting) -> tuple[Array]:
        return (padding_mask(given, source, given.sizes.source_pad),)

    def both(given: Setting) -> tuple[Array, Array]:
        return (*hidden(given), target_mask(given, target, given.sizes.target_pad))

    first = {one: _begun(one, lists[one], parts, run, sizes) for one in ("encoder.", "decoder.")}
    return [
        *_of_embedding("source", source, first["encoder."]),
        *_of_embedding("target", target, first["decoder."]),
        *_of_layer("encoder_layer", "encoder.layers.0", encoding, hidden, sizes),
        *_of_layer("decoder_layer", "decoder.layers.0", decoding, both, sizes),
    ]


def sublayers(component: str, parts: Sequence[Part], run: Run) -> list[Stage]:
    """Return the sublayers of the first layers that were called as modules, of stacks alone."""
    if component not in ("encoder", "decoder", "model") or not run.samples:
        return []
    return [stage for part in parts for stage in _sublayer(part, parts, run)]


def norm_placement(
    parts: Sequence[Part], lists: Mapping[str, Layers], run: Run, sizes: Sizes
) -> dict[str, Value]:
    """Return where the norms of a stack are, by what its first attention is given, {} for neither.

    In a stack with a mistake in each layer no output shows it.
    """
    for stack, layers in lists.items() if run.samples else ():
        states = _begun(stack, layers, parts, run, sizes)
        given = _attended(stack, parts, run, sizes)
        if not states or not given:
            continue
        if any(np.array_equal(one, states[0]) for one in given):
            return {"norm_placement": "post"}
        if any(_norms(fired, states[0], given) for fired in run.fired):
            return {"norm_placement": "pre"}
    return {}


def _begun(
    stack: str, layers: Layers, parts: Sequence[Part], run: Run, sizes: Sizes
) -> list[Floats]:
    """Return the states (B, L, D) that the first layer of a stack begins with.

    Where no module holds the layer alone, they are those that the norm before its attention takes.
    """
    if states := _states(_layer(layers, parts, run), sizes):
        return states
    given = _attended(stack, parts, run, sizes)
    norms = [unit.weight for part in parts for unit in part.units if not part.component]
    before = [
        batch_first(fired.inputs[0])
        for fired in run.fired
        if any(one.startswith(f"{fired.path}.") for one in norms) and len(fired.inputs) == 1
        if any(np.array_equal(batch_first(fired.output), one) for one in given)
    ]
    return before[:1]


def _attended(stack: str, parts: Sequence[Part], run: Run, sizes: Sizes) -> list[Floats]:
    """Return the states (B, L, D) that the first self-attention of a stack is given."""
    slot = f"{stack}layers.0.self_attention"
    attention = [home(part, parts, run) for part in parts if part.slot == slot]
    return [one for fired in attention for one in _states(fired, sizes)]


def _norms(fired: Fired, x: Floats, given: Sequence[Floats]) -> bool:
    """Say whether a module got `x` alone and returned what is `given`."""
    got = [batch_first(one) for one in fired.inputs]
    output = batch_first(fired.output)
    return (
        len(got) == 1
        and np.array_equal(got[0], x)
        and any(np.array_equal(output, one) for one in given)
    )


def _sublayer(part: Part, parts: Sequence[Part], run: Run) -> Iterator[Stage]:
    """Yield attention, or a feed-forward network, of a layer; a residual may be inside."""
    fired = home(part, parts, run)
    samples = part_samples(part.component, fired) if part.component else []
    if samples:
        formulas = [
            formula
            for sample in samples
            for formula in _with_and_without_residual(part.component, part.slot, sample)
        ]
        yield Stage(OPEN.get(part.component, ()), tuple(formulas), samples[0].output)


def _with_and_without_residual(component: str, slot: str, sample: Sample) -> Iterator[Compute]:
    def plain(given: Setting) -> Floats:
        answer: Floats = ORACLES[component](given.under(slot), *sample.inputs)
        return answer

    yield plain
    x = sample.inputs[0]
    if x is not None and x.shape == sample.output.shape:
        yield lambda given: x + plain(given)


def _of_embedding(side: str, ids: Array, states: Sequence[Floats]) -> list[Stage]:
    """Return the embedding of one side, which the first layer of its stack takes."""
    axes = ("embedding_scale", "positional_encoding")
    return [Stage(axes, (lambda given: embed(given, side, ids),), states[0])] if states else []


def _of_layer(
    component: str,
    prefix: str,
    fired: Fired | None,
    masks: Callable[[Setting], Sequence[Array | None]],
    sizes: Sizes,
) -> list[Stage]:
    """Return the first layer of a stack, which is called with its sequences and `masks`."""
    states = _states(fired, sizes)
    wanted = 1 if component == "encoder_layer" else 2
    if fired is None or len(states) < wanted:
        return []

    def compute(given: Setting) -> Floats:
        inputs = (*states[:wanted], *masks(given))
        answer: Floats = ORACLES[component](given.under(prefix), *inputs)
        return answer

    return [Stage(OPEN[component], (compute,), batch_first(fired.output))]


def _states(fired: Fired | None, sizes: Sizes) -> list[Floats]:
    """Return the distinct inputs (B, L, D) of a call, the sequence that it returns first."""
    if fired is None:
        return []
    output = batch_first(fired.output)
    found = [batch_first(one) for one in distinct(fired.inputs) if one.ndim == output.ndim == 3]
    found = [one for one in found if one.shape[-1] == sizes.d_model]
    return sorted(found, key=lambda one: one.shape != output.shape)


def _layer(layers: Layers, parts: Sequence[Part], run: Run) -> Fired | None:
    """Return the call of the first of like layers, None where no module holds it alone."""
    own = {unit.path for unit in layers.units}
    others = [unit for part in parts for unit in part.units if unit.path not in own]
    fired = run.home(sorted(own), "")
    if fired is None or any(unit.path.startswith(f"{fired.path}.") for unit in others):
        return None
    second = f"{layers.start}1" if layers.numbered else ""
    return None if second and f"{second}.".startswith(f"{fired.path}.") else fired


def home(part: Part, parts: Sequence[Part], run: Run) -> Fired | None:
    """Return the call of the module that holds `part` and nothing of the other `parts`.

    Where none does, as where a norm is inside, it is what passed through its own matrices.
    """
    others = [unit for one in parts if one is not part for unit in one.units]
    fired = run.home([unit.path for unit in part.units], "")
    if fired is None or any(unit.path.startswith(f"{fired.path}.") for unit in others):
        return _through(part, run) if part.component in _OF_MATRICES else None
    return fired


_OF_MATRICES = ("feed_forward", "multi_head_attention")
"""Parts that begin and end with matrices."""


def _through(part: Part, run: Run) -> Fired | None:
    """Return what the first matrices of a part are given, and what its last one returns.

    None where not all of them were called as modules.
    """
    called = {one.path: one for one in run.fired}
    own = sorted({one.path for one in part.units if one.path in called}, key=run.order.index)
    if len(own) < max(2, len({one.path for one in part.units})):
        return None
    given = [one for path in own[:-1] for one in called[path].inputs]
    first = given if part.component == "multi_head_attention" else called[own[0]].inputs
    return Fired("", tuple(first), called[own[-1]].output)
