"""Calls of a mixture of experts, at positions where the scores of the experts differ."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated

import numpy as np

from attentest.harness.arithmetic import arithmetic
from attentest.harness.copies import cast
from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.testing.assertions import finite, matches, same_shape
from attentest.testing.common import HALF_PRECISIONS
from attentest.testing.draw import Draw
from attentest_spec import Sizes
from attentest_spec.mixture_of_experts import (
    chosen_experts,
    mixed_by,
    router_logits,
    router_scores,
)
from attentest_spec.precision import epsilon
from attentest_spec.setting import Array, Floats, Setting

COMPONENT = "mixture_of_experts"

_TRIES = 200
"""The largest number of draws of the positions at which two scores are near to each other."""

_GAP = 0.01
"""Least gap between the scores of a chosen expert and the next one, of the size of the logits."""

_UNITS = 8.0
"""The number of roundings that are less than the gap."""


@dataclass(frozen=True)
class MixtureCall:
    """One call of a mixture of experts on x (B, S, D)."""

    probe: Probe
    x: Floats

    @property
    def setting(self) -> Setting:
        """The setting of the reference."""
        return setting_of(self.probe)

    def output(self) -> Annotated[Array, "B S D"]:
        """Return the output (B, S, D), demanded to be of its shape and finite."""
        output = self.probe.output(self.x)
        same_shape(output, self.x.shape)
        finite(output)
        return output

    def checked_output(self) -> Annotated[Array, "B S D"]:
        """Return the output (B, S, D), demanded to be the reference's where it has a map."""
        output = self.output()
        if self.probe.parameters:
            matches(self.probe, self.x, actual=output)
        return output

    def chosen(self) -> Annotated[Array, "R K"]:
        """Return the numbers (R, K) of the experts that the reference chooses."""
        given = self.setting
        return chosen_experts(given, router_scores(given, self.x.reshape(-1, self.x.shape[-1])))

    def choices_of_experts(self) -> Iterator[tuple[tuple[int, ...], Floats]]:
        """Yield every set of k experts, and the output (B, S, D) with it at all positions."""
        sizes, rows = self.probe.sizes, self.x[..., 0].size
        for experts in combinations(range(sizes.experts), sizes.chosen_experts):
            chosen = np.broadcast_to(np.array(experts), (rows, len(experts)))
            yield experts, mixed_by(self.setting, self.x, chosen)


def setting_of(probe: Probe) -> Setting:
    """Return the setting of the reference."""
    return Setting(probe.sizes, probe.subject.choices, probe.parameters)


def draw_sizes(draw: Draw, *, experts: int = 0, chosen: int = 0, width: int = 0) -> Sizes:
    """Draw sizes that differ; some experts are chosen and some are not, unless given."""
    count = experts or draw.choose((4, 5, 3, 7))
    sizes = Sizes(
        d_model=width or draw.integer(2, 6),
        d_ff=draw.choose((7, 11)),
        heads=1,
        experts=count,
        chosen_experts=chosen or draw.choose((2, count - 1, 1, 2)),
        shared_inner=draw.choose((0, 5)),
    )
    return draw.subject.limits.fitted(sizes)


def draw_call(
    subject: Subject,
    draw: Draw,
    *,
    sizes: Sizes | None = None,
    scale: float = 1.0,
    precision: str = "",
    shape: tuple[int, int] | None = None,
    bias: float = 0.125,
) -> MixtureCall:
    """Draw parameters and x (B, S, D), with a gap between the scores at every position.

    The `bias` of the router, as large as that, is to decide about few positions by itself.
    """
    sizes = sizes or draw_sizes(draw)
    parameters = draw_parameters(draw, sizes, precision=precision, bias=bias)
    probe = subject.part(COMPONENT, sizes, parameters=parameters, precision=precision)
    batch, length = shape or (draw.batch(), draw.length())
    return MixtureCall(probe, draw_rows(draw, probe, batch, length, scale=scale))


def draw_parameters(
    draw: Draw, sizes: Sizes, *, precision: str = "", bias: float = 0.125
) -> dict[str, Floats]:
    """Draw parameters, a bias of the router of the size `bias`."""
    drawn = draw.parameters(COMPONENT, sizes, precision=precision)
    if "router.bias" in drawn:
        wanted = precision or draw.subject.precision
        drawn["router.bias"] = cast(drawn["router.bias"] * bias, wanted)
    return drawn


def draw_rows(
    draw: Draw, probe: Probe, batch: int, length: int, *, scale: float = 1.0
) -> Annotated[Floats, "{batch} {length} D"]:
    """Draw x (B, S, D); where the parameters are known, with a gap at every position."""
    width, precision = probe.sizes.d_model, probe.precision
    rows = draw.floats(batch * length, width, scale=scale, precision=precision)
    for _ in range(_TRIES if probe.parameters else 0):
        near = ~has_gap(probe, rows)
        if not near.any():
            break
        rows[near] = draw.floats(int(near.sum()), width, scale=scale, precision=precision)
    else:
        if probe.parameters:
            raise Absent(f"no inputs are drawn whose scores differ in {precision}")
    return rows.reshape(batch, length, width)


def has_gap(probe: Probe, rows: Annotated[Floats, "R D"]) -> Annotated[Array, "R"]:
    """Say of which rows (R, D) correct code chooses the same experts, however it rounds.

    The numbers that are compared may be the logits, or a softmax of them. Sigmoids are no larger
    than 1, and their slope than a quarter. Where all are tiny, a division by their sum is left out.
    """
    given, choices = setting_of(probe), probe.subject.choices
    logits, scores = router_logits(given, rows), router_scores(given, rows)
    unit = _UNITS * max(epsilon(probe.precision), epsilon(arithmetic(probe)))
    size = np.abs(rows) @ np.abs(given["router.weight"]).T
    if choices.router_bias == "in-scores":
        size = size + np.abs(given["router.bias"])
    size = size.max(axis=-1)
    ranked, needed = logits, (_GAP + unit) * size
    aside = choices.router_bias == "in-choice-alone"
    if aside or choices.router_scores == "sigmoid":
        needed = unit * (1.0 + 0.25 * size) + 0.25 * _GAP * np.minimum(size, 1.0)
        ranked = scores + (given["router.bias"] if aside else 0.0)
    ordered = np.sort(ranked, axis=-1)[:, ::-1]
    count = probe.sizes.chosen_experts
    total = np.take_along_axis(scores, chosen_experts(given, scores), axis=-1).sum(axis=-1)
    known: Array = total > _GAP
    if count < probe.sizes.experts:
        known &= ordered[:, count - 1] - ordered[:, count] > needed
    return known


def draw_scale(subject: Subject, draw: Draw) -> float:
    """Draw a magnitude of x; half precision holds neither the products nor small differences."""
    if subject.precision in HALF_PRECISIONS:
        return draw.choose((1.0, 0.5, 3.0))
    if subject.choices.router_scores == "sigmoid":
        return draw.choose((1.0, 1e-3, 3.0))  # beyond them, scores of several experts are 1
    return draw.scale()


def spread(draw: Draw, probe: Probe, parameters: list[str]) -> dict[str, Floats]:
    """Return the parameters of the probe, with those that are named moved far away.

    Less far in half precision, which does not hold the products of three of them.
    """
    scale = 3.0 if probe.precision in HALF_PRECISIONS else 30.0
    moved = {
        name: cast(values + draw.floats(*values.shape, scale=scale), probe.precision)
        for name, values in probe.parameters.items()
        if name in parameters
    }
    return {**probe.parameters, **moved}


def of_expert(probe: Probe, number: int) -> list[str]:
    """Return the names of the parameters of one expert."""
    return [name for name in probe.parameters if name.startswith(f"experts.{number}.")]
