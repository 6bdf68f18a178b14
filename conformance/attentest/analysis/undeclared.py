"""Measures choices and limits that a backend leaves undeclared.

Of choices, those for which the paper does not specify an option.

It names layer normalisation and gives no formula, so any listed one conforms. One that is
not declared is identified, and where no option fits, the closest of those in use is taken. It has
no rounding either: a table that is computed in single precision is judged as such by all clauses
but the one about its arithmetic, which says that it was not declared. A limit is a fact about all
components, found once: it is no violation of each clause that meets it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from attentest.analysis.identify.measure import sizes_for
from attentest.analysis.identify.measurement import without_targets
from attentest.analysis.identify.norms import FORMULA, norm_candidates, norm_station, variations
from attentest.analysis.identify.parts import Part, rotary_sizes
from attentest.analysis.identify.station import Station
from attentest.harness.errors import Absent, BackendError, Violation
from attentest.harness.subject import Subject
from attentest.harness.tolerances import as_floats
from attentest_spec import Backend, Choices, Limits, Sizes
from attentest_spec.components import COMPONENTS, inside
from attentest_spec.parameters import draw, learned_positions


def effective_choices(
    backend: Backend,
    precision: str = "",
    device: str = "cpu",
    parts: Collection[str] = (),
) -> Choices:
    """Return the choices that `backend` is judged under: declared ones, and measured ones.

    `precision` is the one to measure in, the finest that the backend claims by default. `parts`
    names the components that are measured, of those that :func:`measured_for` returns; all by
    default.

    Raises ValueError or UnknownName where its declaration is not well formed.
    """
    choices = Choices.of(backend.choices)
    finest = precision or backend.limits.finest
    for component in parts or _MEASURED:
        known, measured = _MEASURED[component]
        axes = [axis for axis in known if axis not in backend.choices]
        if not axes or component not in backend.components:
            continue
        try:
            wanted = backend.limits.precision_of(component, finest)
            subject = Subject(backend, choices=choices, precision=wanted, device=device)
            choices = measured(subject, axes)
        except (Absent, BackendError, Violation):
            pass  # the clauses will say what is wrong
    return choices


def measured_for(component: str, choices: Choices) -> tuple[str, ...]:
    """Return the components whose measured choices clauses about `component` may depend on.

    `choices` are the declared ones. An empty `component` means all of them.
    """
    rotary = choices.attention_rotary != "none"
    return tuple(part for part in _MEASURED if not component or _depends(component, part, rotary))


def _depends(component: str, part: str, rotary: bool) -> bool:
    """Say whether clauses about `component` may depend on the measured choices of `part`."""
    contained, chapter = inside(component), COMPONENTS[component].chapter
    if part in ("padded_batch", "loss"):
        return chapter == COMPONENTS[part].chapter
    if part == "rotary" and component != "rotary":
        # The clauses of two chapters compare numbers with those of rotary positions in any case.
        compared = chapter in ("multi_head_attention", "language_model")
        return (rotary or compared) and "multi_head_attention" in contained
    return part == "layer_norm" or part in contained


def _rounded(subject: Subject, axes: list[str]) -> Choices:
    """Return the choices with a table in single precision, where no other one fits."""
    known, limits = subject.choices, subject.limits
    length = min(8, limits.length or 8)
    if known.positional_encoding == "none" or learned_positions(known):
        return known
    probe = subject.part("positional_encoding", Sizes(d_model=4, heads=1, max_length=length))
    station = Station.of(probe, {}, (np.zeros((1, length, 4)),))
    single = known.but(position_arithmetic="float32")
    return single if not station.fits(known) and station.fits(single) else known


def _padded(subject: Subject, axes: list[str]) -> Choices:
    """Return the choices with the side of the padding and the tokens around a sequence."""
    known = subject.choices
    probe = subject.part("padded_batch", sizes_for(subject))
    station = Station.of(probe, {}, Part("padded_batch", probe, known).inputs())
    return next((one for one in variations(known, axes) if station.fits(one)), known)


def _turned(subject: Subject, axes: list[str]) -> Choices:
    """Return the choices with the precision of the angles, and with what a part of a head is."""
    known = subject.choices
    probe = subject.part("rotary", rotary_sizes(sizes_for(subject), subject.limits.length))
    station = Station.of(probe, {}, Part("rotary", probe, known).inputs())
    return next((one for one in variations(known, sorted(axes)) if station.fits(one)), known)


def _routed(subject: Subject, axes: list[str]) -> Choices:
    """Return the choices with the scores of a mixture of experts, their weights and precision."""
    known = subject.choices
    part = Part("mixture_of_experts", subject.part("mixture_of_experts", sizes_for(subject)), known)
    station = Station.of(part.probe, part.drawn(), part.inputs())
    return next((one for one in variations(known, axes) if station.fits(one)), known)


def _loss(subject: Subject, axes: list[str]) -> Choices:
    """Return the choices with what the loss takes, and what it divides by.

    Both show without padding and smoothing, where most mistakes do not: the others are left to
    the clauses.
    """
    known = subject.choices
    probe = subject.part("loss", sizes_for(subject).but(smoothing=subject.limits.smoothing or 0.0))
    part = Part("loss", probe, known)
    output, target = (np.asarray(one) for one in part.inputs())
    words = np.arange(target.size).reshape(target.shape) % (probe.sizes.target_vocabulary - 1)
    words = words + (words >= probe.sizes.target_pad)
    station = Station.of(probe, {}, (output, words))
    shown = [axis for axis in axes if axis != "loss_without_targets"]
    fitting = [one for one in variations(known, shown) if station.fits(one)]
    found = next(iter(fitting), known)
    if "loss_without_targets" not in axes:
        return found
    empty = probe.output(output, np.full_like(target, probe.sizes.target_pad))
    return found.but(loss_without_targets=without_targets(empty))


def effective_limits(
    backend: Backend, choices: Choices, precision: str = "", device: str = "cpu"
) -> Limits:
    """Return the limits of `backend` that is judged under `choices`, measured ones included."""
    limits = backend.limits
    component = next((one for one in _WITH_POSITIONS if one in backend.components), "")
    if not (limits.odd_width and component):
        return limits
    subject = Subject(
        backend,
        choices=choices,
        precision=precision or limits.finest,
        device=device,
    )
    odd = limits.fitted(Sizes(d_model=5, heads=1, layers=1, max_length=min(8, limits.length or 8)))
    even = replace(limits, odd_width=False)
    refused = not _answers(subject, component, odd)
    return even if refused and _answers(subject, component, even.fitted(odd)) else limits


_WITH_POSITIONS = ("positional_encoding", "embedding", "encoder", "model")
"""Components whose pairs of columns may need an even width, the smaller first.

An embedding and an encoder may have sines inside.
"""


def frozen_rows(subject: Subject, sizes: Sizes) -> tuple[int, ...]:
    """Return the ids whose rows an embedding at `sizes` gives no gradient; () where it has none."""
    rng = np.random.default_rng(0)
    parameters = draw("embedding", sizes, subject.choices, rng)
    tokens = np.arange(sizes.source_vocabulary)[:, None]
    try:
        probe = subject.part("embedding", sizes, parameters=parameters)
        pulled = probe.vjp((tokens,), rng.normal(size=(*tokens.shape, sizes.d_model)))
    except (Absent, BackendError, Violation):
        return ()
    rows = as_floats(pulled.parameters.get("weight", np.ones((0, 1))))
    return tuple(int(row) for row in np.flatnonzero(~rows.any(axis=-1)))


def marks_with_zeros(subject: Subject, sizes: Sizes) -> bool:
    """Say whether a negative id gives zeros, no id of the vocabulary does, and others are refused.

    One-hot rows give zeros for ids beyond the vocabulary, too: that is no marker.
    """
    parameters = draw("embedding", sizes, subject.choices, np.random.default_rng(0))
    try:
        probe = subject.part("embedding", sizes, parameters=parameters)
        rows = as_floats(probe.output(np.arange(sizes.source_vocabulary)[:, None]))
    except (Absent, BackendError, Violation):
        return False

    def is_zero(one: int) -> bool:
        try:
            return not as_floats(probe.output(np.array([[one]]))).any()
        except (Absent, BackendError, Violation):
            return False

    try:
        probe.output(np.array([[sizes.source_vocabulary]]))
    except BackendError:
        return bool(rows.any(axis=-1).all()) and any(map(is_zero, _MARKERS))
    return False


_MARKERS = (-1, -100)
"""Negative ids that mark what is no token."""


def _answers(subject: Subject, component: str, sizes: Sizes) -> bool:
    """Say whether `component` is built and called at `sizes` without an error."""
    try:
        probe = subject.part(component, sizes)
        probe.output(*Part(component, probe, subject.choices).inputs())
    except (Absent, BackendError, Violation):
        return False
    return True


def _closest(subject: Subject, axes: list[str]) -> Choices:
    probe = subject.part("layer_norm", Sizes(d_model=4))
    station = norm_station(Part("layer_norm", probe, subject.choices))
    found = norm_candidates(station, subject.choices, axes)[0][0]
    if station.fits(found):
        return found
    return station.ranked(variations(subject.choices, axes))[0][0]


_MEASURED: Mapping[str, tuple[Sequence[str], Callable[[Subject, list[str]], Choices]]] = {
    "layer_norm": (tuple(FORMULA), _closest),
    "positional_encoding": (("position_arithmetic",), _rounded),
    "padded_batch": (("padding_side", "sequence_marks"), _padded),
    "loss": (("loss_input", "loss_normaliser", "loss_without_targets"), _loss),
    "rotary": (("rotary_arithmetic", "rotary_partial"), _turned),
    "mixture_of_experts": (
        ("router_scores", "routing_weights", "routing_scale", "routing_arithmetic"),
        _routed,
    ),
}
"""The components in which choices are measured, with these choices and the function for them."""
