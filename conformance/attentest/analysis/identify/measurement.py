"""The measurement of one component in one structure, choice by choice.

The norms and the activation are isolated, and measured by trying the reference under every option.
Then everything is active at once: there the rest is measured, and the structure is confirmed.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import product, takewhile
from math import inf
from typing import Annotated

import numpy as np

from attentest.analysis.identify.finding import CANNOT_TELL, MEASURED, NONE_FITS, Evidence
from attentest.analysis.identify.masking import NoMask, empty_row, fill
from attentest.analysis.identify.norms import (
    FAR,
    FORMULA,
    OF_RMS,
    norm_candidates,
    norm_station,
    rms_candidates,
)
from attentest.analysis.identify.parts import Part, bent, stilled
from attentest.analysis.identify.reach import ARITHMETICS, NETWORKS, OF_KIND, axes_of, of_one_shape
from attentest.analysis.identify.rounding import contradiction, rounds_equal_scores
from attentest.analysis.identify.search import flips, large, searched, silenced
from attentest.analysis.identify.station import Candidate, Station
from attentest.analysis.identify.structure import SHAPED, TIED, WEIGHTED, has_buckets, ties
from attentest.harness.errors import Absent, BackendError, Violation
from attentest.harness.subject import Probe
from attentest.harness.tolerances import as_floats
from attentest_spec import Choices
from attentest_spec.choices import Value
from attentest_spec.contract import NoParameterMap
from attentest_spec.parameters import learned_positions
from attentest_spec.setting import Array

WIDTH = 4
"""The model width: its root is exact, and n and n - 1 differ most at small widths."""

_EPSILONS = ("norm_epsilon", "norm_epsilon_place", "rms_epsilon", "rms_epsilon_place")
"""The choices of norms that the rounding of other parts may hide."""

_ASKED = ("mask_fill", "fully_masked_row", "loss_without_targets")
"""The choices that inputs of their own show, at the end."""


def reason_of(component: str, failure: Exception) -> str:
    """Return why a component cannot be measured, in one clause that names it."""
    if isinstance(failure.__cause__, NoParameterMap):
        return f"{component} has no parameter map"
    text = str(failure)
    return text if component in text else f"{component}: {text}"


class Measurement:
    """The measurement of one component in one structure; `part` holds the choices known so far."""

    def __init__(self, component: str, probe: Probe, structure: Choices, known: Choices) -> None:
        """Begin with the choices that the parameters show, and with `known` for the rest."""
        self.tied = ties(probe, structure)
        self.part = Part(component, probe, begun_with(structure, self.tied, known))
        self.axes = axes_of(component)
        self.evidence: list[Evidence] = []
        self.explained = False
        self.exact = False
        self.far = False  # from every option in every arithmetic
        self.has_norms = True  # of an option, if it has any
        self.difference = inf

    def take(self) -> None:
        """Measure everything and add to `evidence`."""
        self.begin()
        self._together()
        if not self.explained:
            self._silenced()
        for axis, question in zip(
            _ASKED, (self._fill, self._empty_row, self._no_targets), strict=True
        ):
            if axis in self.axes:
                self.evidence.append(self._asked(axis, question))

    def begin(self) -> None:
        """Measure the norms, and the activation where attention is silenced."""
        if self.part.component == "model" and not _whole(self.part).fits(self.part.choices):
            self._guess(large(self.part))
        self._norms()
        if "activation" in self.axes and self.part.component not in NETWORKS:
            still = stilled(self.part.drawn(), "self_attention", "cross_attention")
            station = Station.of(self.part.probe, still, self.part.inputs())
            self._learn(["activation"], station, flips(station, self.part, ["activation"]))

    def rules_out(self, arithmetic: Mapping[str, Value]) -> bool:
        """Return whether another `arithmetic` comes no closer, where all other choices are known.

        Measuring under it would find the same for these, in as much time.
        """
        apart = {*ARITHMETICS, *_ASKED}  # nothing is masked where all is active
        known = (one.status == MEASURED for one in self.evidence if one.choice not in apart)
        other = self.part.choices.but(**arithmetic)
        return all(known) and _whole(self.part).distance(other) >= self.difference

    def _guess(self, ranked: Sequence[Candidate]) -> None:
        self.part = replace(self.part, choices=ranked[0][0])

    def _learn(self, axes: Collection[str], station: Station, ranked: list[Candidate]) -> None:
        self._guess(ranked)
        self.evidence += _shown(self.part.component, axes, station, ranked)

    def _norms(self) -> None:
        placed = [axis for axis in ("norm_kind", "norm_placement") if axis in self.axes]
        formula = OF_RMS if placed and self.part.choices.norm_kind == "rms" else FORMULA
        axes: Sequence[str] = [*(one for one in formula if one in self.axes), *placed[1:]]
        if not axes:
            return
        station = norm_station(self.part)
        axes, ranked = self._ranked(station, self.part, axes, placed)
        if placed and "activation" in self.axes and not station.fits(ranked[0][0]):
            others = self._ranked(station, bent(self.part), axes, placed)
            if station.fits(others[1][0][0]):
                axes, ranked = others
        if placed:
            kind = str(ranked[0][0].norm_kind)
            apart = {*OF_KIND["layer"], *OF_KIND["rms"]} - {*OF_KIND[kind]}
            self.axes = [axis for axis in self.axes if axis not in apart]
            axes = [*placed[:1], *(axis for axis in axes if axis not in apart)]
        self.has_norms = station.fits(ranked[0][0])
        self._learn(axes, station, ranked)

    def _ranked(
        self, station: Station, part: Part, axes: Sequence[str], placed: Sequence[str]
    ) -> tuple[Sequence[str], list[Candidate]]:
        """Return candidates for the norms, with the choices in which they differ.

        An epsilon is solved for where no value in use fits, of norms of either kind.
        """
        if station.fits(part.choices):
            return axes, flips(station, part, axes)
        ways: Sequence[tuple[Sequence[str], Callable[..., list[Candidate]]]]
        ways = [(axes, norm_candidates), ([*OF_RMS, *placed[1:]], rms_candidates)]
        found: list[tuple[Sequence[str], list[Candidate]]] = []
        for solve, (own, rank) in product((False, True), ways if placed else ways[:1]):
            found.append((own, rank(station, part.choices, own, solve=solve)))
            if station.fits(found[-1][1][0][0]):
                return found[-1]
        return min(found, key=lambda one: one[1][0][1])

    def _together(self) -> None:
        """Measure the rest, with everything active, and confirm the structure."""
        known = {one.choice for one in self.evidence}
        # Of two weights of an RMS norm, or biases of a router, the numbers tell which.
        numbers = {"positional_encoding", *of_one_shape(self.part.choices)}
        shaped = [axis for axis in self.axes if axis in {*SHAPED, *TIED} - numbers]
        if "position_offset" in self.axes and learned_positions(self.part.choices):
            shaped.append("position_offset")  # a learned table has a row for every one skipped
        later = {*_ASKED, *ARITHMETICS}
        rest = [axis for axis in self.axes if axis not in {*known, *shaped, *later}]
        station = _whole(self.part)
        self._learn(rest, station, searched(station, self.part, rest))
        self.exact = station.fits(self.part.choices, rounded=False)
        self.explained = self.exact or station.fits(self.part.choices)
        remaining = self.difference = station.distance(self.part.choices)
        self.evidence = [self._closest(one, station) for one in self.evidence]
        self.evidence += [self._structural(axis, remaining) for axis in shaped]
        arithmetics = [axis for axis in ARITHMETICS if axis in self.axes]
        coarse = self.part.choices.but(**dict.fromkeys(arithmetics, "float32"))
        self.far = not self.explained and remaining > FAR * station.tolerance(coarse)
        self.evidence += [self._arithmetic(axis, station, remaining) for axis in arithmetics]

    def _closest(self, one: Evidence, station: Station) -> Evidence:
        """Return the option of a norm that comes closest, where several fit and no default does.

        Tables in single precision hide a small epsilon between others: a judge that took the
        default would report its difference.
        """
        value, default = self.part.choices[one.choice], Choices()[one.choice]
        if one.status != CANNOT_TELL or one.choice not in _EPSILONS or value == default:
            return one
        usual = self.part.choices.but(**{one.choice: default})
        if not self.explained or station.fits(usual):
            return one
        return replace(one, status=MEASURED, value=value, reason="")

    def _silenced(self) -> None:
        """Measure what no option explained where sublayers, which may be wrong, are silenced."""
        left = {one.choice for one in self.evidence if one.status == NONE_FITS}
        given = {*SHAPED, *TIED, *ARITHMETICS} - {"positional_encoding"}
        axes = [axis for axis in self.axes if axis in left - given]
        found = silenced(self.part, axes) if axes else None
        if found is None:
            return
        station, ranked = found
        shown = _shown(self.part.component, axes, station, ranked)
        measured = {one.choice: one for one in shown if one.status == MEASURED}
        self.evidence = [measured.get(one.choice, one) for one in self.evidence]
        self._guess(ranked)

    def _arithmetic(self, axis: str, station: Station, difference: float) -> Evidence:
        """Return the arithmetic that explains the numbers, unless another one does as well."""
        component = self.part.component
        if not self.explained:
            return _nothing(axis, component, difference)
        value = self.part.choices[axis]
        coarse = self.part.choices.but(**{axis: "float32"})
        tolerance = station.tolerance(self.part.choices, rounded=not self.exact)
        if value != "float32" and station.distance(coarse) <= tolerance:
            if axis == "softmax_arithmetic" and rounds_equal_scores(self.part):
                return Evidence(axis, component, MEASURED, "float32", difference=difference)
            text = f"in {component} {value} and float32 give the same numbers"
            return Evidence(axis, component, CANNOT_TELL, reason=text)
        if value == "float32" and (reason := contradiction(self.part, axis, WIDTH)):
            return Evidence(axis, component, NONE_FITS, reason=reason, difference=difference)
        return Evidence(axis, component, MEASURED, value, difference=difference)

    def _structural(self, axis: str, difference: float) -> Evidence:
        """Return the option of `axis` that the parameters show, if it explains the numbers."""
        component = self.part.component
        if axis == "head_width" and self.part.probe.sizes.heads == 1:
            return Evidence(axis, component, CANNOT_TELL, reason="with one head both are the same")
        if axis in self.tied and self.tied[axis] is None:
            text = f"parameters of {component} are one in no listed way"
            return Evidence(axis, component, NONE_FITS, reason=text)
        if not self.explained:
            return _nothing(axis, component, difference)
        value = self.part.choices[axis]
        return Evidence(axis, component, MEASURED, value, difference=difference)

    def _asked(self, axis: str, question: Callable[[], Evidence]) -> Evidence:
        component = self.part.component
        if not self.explained:
            text = f"{component} fits no listed option even where nothing is masked"
            return Evidence(axis, component, CANNOT_TELL, reason=text)
        try:
            return question()
        except (Absent, BackendError, Violation, NoMask) as failure:
            return Evidence(axis, component, CANNOT_TELL, reason=reason_of(component, failure))

    def _fill(self) -> Evidence:
        value, difference = fill(self.part)
        if value is None:
            return _nothing("mask_fill", self.part.component, difference)
        self.part = replace(self.part, choices=self.part.choices.but(mask_fill=value))
        return Evidence("mask_fill", self.part.component, MEASURED, value, difference=difference)

    def _empty_row(self) -> Evidence:
        station = empty_row(self.part)
        ranked = flips(station, self.part, ["fully_masked_row"])
        listed = [one for one in ranked if one[0].fully_masked_row != "unspecified"]
        (evidence,) = _shown(self.part.component, ["fully_masked_row"], station, listed)
        if evidence.status != NONE_FITS:
            return evidence
        text = "it fits none of the specified options"
        return replace(evidence, status=MEASURED, value="unspecified", reason=text)

    def _no_targets(self) -> Evidence:
        axis, component = "loss_without_targets", self.part.component
        output, target = self.part.inputs()
        padding = np.full_like(np.asarray(target), self.part.probe.sizes.target_pad)
        shown = without_targets(self.part.probe.output(output, padding))
        return Evidence(axis, component, MEASURED, shown)


def without_targets(found: Annotated[Array, "*shape"]) -> str:
    """Return the option that `found`, the loss of nothing but padding, shows; its shape is ()."""
    values = as_floats(found)
    return "nan" if np.isnan(values).all() else "unspecified" if values.any() else "zero"


def begun_with(structure: Choices, tied: dict[str, str | None], known: Choices) -> Choices:
    """Return the choices that a measurement begins with: `known`, and those of the structure."""
    own = ("attention_sink", *(axis for axis in SHAPED if axis != "positional_encoding"))
    shaped = {axis: structure[axis] for axis in own}
    if structure.query_key_norm in WEIGHTED:
        shaped |= {one: structure[one] for one in ("query_key_norm", "rms_bias")}
        shaped["rms_weight"] = "weight" if known.rms_weight == "none" else known.rms_weight
    if has_buckets(structure) and not has_buckets(known):
        shaped["relative_bias"] = structure.relative_bias
    if known.norm_kind == "rms":  # whose weight and bias have the names of those of a layer norm
        shaped |= {"rms_weight": known.rms_weight, "rms_bias": structure.norm_bias}
    base = known.but(**shaped, **{axis: value or TIED[axis][0] for axis, value in tied.items()})
    learned = learned_positions(structure)
    if learned:
        base = base.but(position_offset=structure.position_offset)
    if learned == learned_positions(base):
        return base
    return base.but(positional_encoding="learned" if learned else "interleaved")


def _whole(part: Part) -> Station:
    """Return the answer with everything active."""
    return Station.of(part.probe, part.drawn(), part.inputs())


def _shown(
    component: str, axes: Collection[str], station: Station, ranked: list[Candidate]
) -> list[Evidence]:
    """Return the evidence of the closest candidates, those that fit up to rounding, for `axes`.

    What rounds inside to single precision, in another way than the reference, needs more tolerance,
    within which more options fit: it is given where none fits without it.
    """
    matched = _matched(station, ranked, rounded=False) or _matched(station, ranked, rounded=True)
    closest = ranked[0][1] if ranked else float("inf")
    if not matched:
        return [_nothing(axis, component, closest) for axis in axes]
    return [_one_of(axis, component, [one[axis] for one in matched], closest) for axis in axes]


def _matched(station: Station, ranked: list[Candidate], *, rounded: bool) -> list[Choices]:
    fitting = takewhile(lambda one: one[1] <= station.tolerance(*one, rounded=rounded), ranked)
    return [choices for choices, _ in fitting]


def _one_of(axis: str, component: str, values: list[Value], difference: float) -> Evidence:
    distinct = list(dict.fromkeys(values))
    if len(distinct) == 1:
        return Evidence(axis, component, MEASURED, distinct[0], difference=difference)
    shown = " and ".join(f"{one:g}" if isinstance(one, float) else one for one in distinct)
    text = f"in {component} {shown} give the same numbers"
    return Evidence(axis, component, CANNOT_TELL, reason=text, difference=difference)


def _nothing(axis: str, component: str, difference: float) -> Evidence:
    text = f"in {component} the closest still differs by {difference:.2g}"
    return Evidence(axis, component, NONE_FITS, reason=text, difference=difference)
