"""Measurement of the choices of a whole decoder-only model, from its outputs alone.

Parameters isolate one kind of choice after the other: norms and positions first, with silent
attention and a network that is linear; then the activation; then scores of tokens at one position;
then rotary positions and the window. At last everything is active at once. Options that give the
same numbers in all of these stations are reported as such.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product

import numpy as np

from attentest.analysis.identify.finding import CANNOT_TELL, MEASURED, NONE_FITS, Evidence
from attentest.analysis.identify.language_scores import (
    CAPS,
    NEAR,
    admitted,
    scores,
    turns,
    varied,
)
from attentest.analysis.identify.language_stations import Stations, sizes_for
from attentest.analysis.identify.language_structure import language_structure
from attentest.analysis.identify.norms import EPSILONS, options
from attentest.analysis.identify.numbers import Under, shortest, solve
from attentest.analysis.identify.station import Station
from attentest.analysis.identify.structure import OFFSETS, ties
from attentest.harness.errors import Absent, BackendError, Violation
from attentest.harness.subject import Subject
from attentest.harness.tolerances import as_floats, largest
from attentest_spec import Choices
from attentest_spec.choices import Value
from attentest_spec.language_model import language_model
from attentest_spec.parameters import learned_positions
from attentest_spec.setting import Setting

COMPONENT = "language_model"

ARITHMETIC = ("rms_arithmetic", "softmax_arithmetic", "rotary_arithmetic")

AXES: Mapping[str, tuple[Value, ...]] = {
    "norm_kind": (),
    "norm_epsilon_place": (),
    "norm_variance": (),
    "norm_epsilon": (),
    "norm_bias": (),
    "rms_epsilon_place": (),
    "rms_epsilon": (),
    "rms_weight": (),
    "rms_bias": (),
    "block_norms": (),
    "block_layout": (),
    "final_norm": (),
    "embedding_norm": (),
    "embedding_scale": (),
    "positional_encoding": (),
    "position_offset": (),
    "logit_scale": (),
    "output": (),
    "logit_cap": ("none", 20.0),
    "generator_bias": (),
    "tying": (),
    "activation": (),
    "feed_forward_bias": (),
    "feed_forward_gate": (),
    "projection_bias": (),
    "head_width": (),
    "key_heads": (),
    "query_key_norm": (),
    "query_key_norm_place": (),
    "score_scale": ("inverse-sqrt-e", 0.37),
    "score_cap": CAPS,
    "relative_bias": (),
    "attention_window": (),
    "attention_sink": (),
    "packed_documents": (),
    "attention_rotary": (),
    "rotary_pairs": (),
    "rotary_base": (),
    "rotary_width": (),
    "rotary_partial": (),
    "rotary_scaling": (),
    "rotary_magnitude": ("as-scaling", 1.0, 1.7),
    "rotary_direction": (),
    **dict.fromkeys(ARITHMETIC, ()),
    "padded_positions": (),
}
"""The choices that a decoder-only model shows, and the values to try: its options for ()."""

BUCKETED = 24
"""The length of a text with more distances than the first ones, which have a bucket each."""

CLEAR = 1e-3
"""A relative difference that no rounding makes."""

BENT = ("relu", "sigmoid", "relu-squared")
"""One activation of which two units make a linear map, as most are, and those of which none do."""

OF_NORMS: Mapping[str, Sequence[Value]] = {
    "norm_variance": ("biased", "unbiased"),
    "rms_weight": ("weight", "one-plus-weight", "none"),
}

_GRID = [float(one) for one in np.logspace(-30, 3, 34)]


def measure_language(subject: Subject) -> list[Evidence]:
    """Return the evidence of a decoder-only model for every choice that it shows.

    Never raises for what a backend does.
    """
    try:
        sizes = sizes_for(subject.limits)
        found = language_structure(subject, COMPONENT, sizes)
        if found is None:
            return [_silent(axis, "its parameters fit no structure") for axis in AXES]
        structure, probe = found
        tying = ties(probe, structure).get("tying")
        one = structure.but(tying="none" if tying in (None, "none") else "all-three")
        search = Search(Stations(probe, one), one)
        search.take()
        return search.evidence()
    except (Absent, BackendError, Violation) as failure:
        return [_silent(axis, str(failure)) for axis in AXES]


def _silent(axis: str, why: str) -> Evidence:
    return Evidence(axis, COMPONENT, CANNOT_TELL, reason=f"{COMPONENT}: {why}")


@dataclass
class Search:
    """The search for the choices of one model; `choices` are those found so far.

    `stations` are the answers that they explain, and `left` is what remains where they do not.
    """

    make: Stations
    choices: Choices
    stations: list[Station] = field(default_factory=list)
    left: float = np.inf
    explained: bool = False

    def take(self) -> None:
        """Search step by step, until one step finds nothing."""
        steps = (self._generator, self._norms, self._activation, self._scores, self._together)
        for step in steps:
            if not step():
                return
        self.explained = True

    def _generator(self) -> bool:
        """Find what the generator returns, and the cap of its logits: they saturate at it."""
        output = self.make.linear().actual
        total = output.sum(axis=-1)
        kind = "logits"
        if np.allclose(np.exp(output).sum(axis=-1), 1.0, atol=1e-5):
            kind = "log-probabilities"
        elif output.min() >= 0 and np.allclose(total, 1.0, atol=1e-5):
            kind = "probabilities"
        self.choices = self.choices.but(output=kind)
        station = self.make.saturated()
        large = as_floats(station.actual)
        if kind == "probabilities":
            with np.errstate(divide="ignore"):
                large = np.log(large)
        span = np.ptp(large, axis=-1).max() / 2
        if np.isfinite(span) and span < 1e4:
            self.choices = self.choices.but(logit_cap=float(f"{span:.6g}"))
            self.stations.append(station)
        return True

    def _norms(self) -> bool:
        """Find the norms, where they are, and what is added to a token."""
        station = self.make.linear()
        near = []
        for activation, offsets in product(BENT, (OFFSETS[:1], OFFSETS[1:])):
            flows = admitted(self.make, self._flows(offsets))
            ranked = station.ranked(one.but(activation=activation) for one in flows)
            limit = 1e-3 * largest(station.actual)
            near = [one for one, difference in ranked if difference < limit][:24]
            if near:
                break
        self.left = min([self.left, *(difference for _, difference in ranked[:1])])
        if not near:
            return False
        fine = self.make.of_all_scales(near[0])
        tried = (one for each in near for one in self._epsilons(each))
        found = next((one for one in tried if _fits(one, fine, station)), None)
        found = found or self._with_epsilon(near, fine, station)
        if found is None:
            return False
        self.choices = found
        self.stations += [station, fine]
        return True

    def _flows(self, offsets: Sequence[Value]) -> Iterator[Choices]:
        """Yield what may happen to a token on its way through norms and linear maps."""
        structure = self.choices
        biased = "present" if structure.rms_bias == "present" else "none"
        if structure.norm_kind == "layer":
            biased = structure.norm_bias
        learned = learned_positions(structure)
        placed = [
            structure.but(positional_encoding=kind, position_offset=offset)
            for kind in options("positional_encoding")
            for offset in ([structure.position_offset] if learned else offsets)
            if kind != "none" or offset == "none"
        ]
        flow = {
            "embedding_scale": options("embedding_scale"),
            "block_norms": options("block_norms"),
            "block_layout": options("block_layout"),
            "final_norm": options("final_norm"),
            "embedding_norm": options("embedding_norm"),
            "logit_scale": options("logit_scale"),
        }
        if structure.rms_weight != "none":
            flow["final_norm"] = [structure.final_norm]
            flow["embedding_norm"] = [structure.embedding_norm]
        for one in placed:
            for base in admitted(self.make, varied(one, **flow)):
                if structure.norm_kind == "rms":
                    yield from varied(base, rms_weight=OF_NORMS["rms_weight"])
                if structure.rms_weight != "none":
                    layer = base.but(norm_kind="layer", norm_bias=biased)
                    yield from varied(layer, norm_variance=OF_NORMS["norm_variance"])

    def _epsilons(self, base: Choices) -> Iterator[Choices]:
        if base.norm_kind == "layer":
            yield from varied(
                base, norm_epsilon_place=options("norm_epsilon_place"), norm_epsilon=EPSILONS
            )
            return
        yield from varied(
            base,
            rms_arithmetic=options("rms_arithmetic"),
            rms_epsilon_place=options("rms_epsilon_place"),
            rms_epsilon=EPSILONS,
        )

    def _with_epsilon(
        self, near: Sequence[Choices], fine: Station, station: Station
    ) -> Choices | None:
        """Return choices with an epsilon that is solved for, None where none explains both."""
        for base in near:
            axis = "norm_epsilon" if base.norm_kind == "layer" else "rms_epsilon"
            for one in dict.fromkeys(each.but(**{axis: 1e-5}) for each in self._epsilons(base)):
                found = _shortest_epsilon(fine, partial(_with, one, axis))
                if found is not None and _fits(found, fine, station):
                    return found
        return None

    def _activation(self) -> bool:
        station = self.make.network()
        ranked = station.ranked(varied(self.choices, activation=options("activation")))
        self.left = ranked[0][1]
        if not station.fits(ranked[0][0]):
            return False
        self.choices = ranked[0][0]
        self.stations.append(station)
        return True

    def _scores(self) -> bool:
        """Find the scores, their turns and the window, up to single precision."""
        found, left = scores(self.make, self.choices)
        placed = left < NEAR or self.make.places(1, same=True) is None
        found, self.left = turns(self.make, found, placed=placed)
        if self.left > 1e-4:
            return False
        self.choices = found
        return True

    def _together(self) -> bool:
        """Find the arithmetic, and the layout of the block, that explain all of attention.

        Which sublayer is given what shows only where both are active.
        """
        stations = [
            self.make.attention(3, same=True),
            self.make.attention(3, same=True, steep=6.0),
            self.make.attention(3),
            self.make.attention(8),
            self.make.attention(8, steep=4.0),
            self.make.attention(8, network=True),
        ]
        axes: dict[str, Sequence[Value]] = {
            **dict.fromkeys(ARITHMETIC[1:], ("as-computed", "float32")),
            "block_layout": options("block_layout"),
        }
        if self.choices.relative_bias.startswith("buckets"):
            axes["relative_bias"] = [
                one for one in options("relative_bias") if "buckets" in str(one)
            ]
            stations.append(self.make.attention(BUCKETED))
        for one in admitted(self.make, varied(self.choices, **axes)):
            if _fits(one, *stations):
                self.choices = one
                self.stations += stations
                return True
        self.left = max(one.distance(self.choices) for one in stations)
        return False

    def evidence(self) -> list[Evidence]:
        """Return the evidence for every choice."""
        return [self._of(axis) for axis in AXES]

    def _of(self, axis: str) -> Evidence:
        if axis == "padded_positions":
            return self._of_padding()
        if not self.stations:
            return self._nothing(axis)
        others = [one for one in AXES[axis] or options(axis) if one != self.choices[axis]]
        same = [one for one in others if self._same(self.choices.but(**{axis: one}), axis)]
        if same:
            shown = " and ".join(str(one) for one in (self.choices[axis], *same))
            text = f"in {COMPONENT} {shown} give the same numbers"
            if not self.explained:
                return self._nothing(axis)
            return Evidence(axis, COMPONENT, CANNOT_TELL, reason=text)
        return Evidence(axis, COMPONENT, MEASURED, self.choices[axis])

    def _nothing(self, axis: str) -> Evidence:
        """Return that the search ended before all was explained, which no option is to blame for.

        Not all combinations are tried: another choice may be the one that was missed.
        """
        text = f"the closest combination that was tried still differs by {self.left:.2g}"
        return _silent(axis, text)

    def _same(self, other: Choices, axis: str) -> bool:
        """Say whether the `other` choices have the same parameters and give the same numbers."""
        if axis == "tying" or not any(True for _ in admitted(self.make, [other])):
            return False
        return all(_alike(one, self.choices, other, axis) for one in self.stations)

    def _of_padding(self) -> Evidence:
        """Return whether padding on the left counts in positions that are given none."""
        axis = "padded_positions"
        if not self.explained:
            return self._nothing(axis)
        probe, parameters = self.make.probe, self.make.tied(self.make.drawn())
        probe.load(parameters)
        tokens = self.make.tokens(5)
        mask = np.ones(tokens.shape, dtype=bool)
        mask[1, :2] = False
        try:
            said = as_floats(probe.output(tokens, mask, None))[mask]
        except (Absent, BackendError, Violation) as failure:
            return _silent(axis, str(failure))
        near = []
        for option in options(axis):
            given = Setting(probe.sizes, self.choices.but(padded_positions=option), parameters)
            expected = language_model(given, tokens, mask)[mask]
            if np.abs(said - expected).max() < 1e-5 * largest(expected):
                near.append(option)
        if len(near) == 1:
            return Evidence(axis, COMPONENT, MEASURED, near[0])
        if near or np.isnan(said).any():  # NaN where padding comes first, as no key is seen there
            return _silent(axis, "both give the same numbers" if near else "padding gives NaN")
        return Evidence(axis, COMPONENT, NONE_FITS, reason="padding on the left fits no option")


def _with(base: Choices, axis: str, value: float) -> Choices:
    return base.but(**{axis: value})


def _shortest_epsilon(station: Station, under: Under) -> Choices | None:
    """Return the choices with the shortest epsilon that explains the station, if any does."""
    value = solve(station, under, _GRID)
    room = station.tolerance(under(value))
    short = shortest(value, lambda one: station.distance(under(one)) <= room)
    return None if short is None else under(short)


def _fits(choices: Choices, *stations: Station) -> bool:
    """Say whether all `stations` are explained."""
    try:
        close = all(one.distance(choices) < CLEAR * largest(one.actual) for one in stations)
        return close and all(one.fits(choices) for one in stations)
    except (ValueError, ArithmeticError, LookupError):
        return False


def _alike(station: Station, found: Choices, other: Choices, axis: str) -> bool:
    """Say whether `other` explains a station as well as `found`.

    What rounds more is given no more room than what was found.
    """
    try:
        if station.distance(other) > CLEAR * largest(station.actual):
            return False
        if axis in ARITHMETIC and other[axis] == "float32":
            return station.distance(other) <= station.tolerance(found)
        return station.fits(other)
    except (ValueError, ArithmeticError, LookupError):
        return False
