"""Faults in the base, in the scaling of frequencies, and in the factor of sines and cosines."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Pair

DYNAMIC = {"rotary_scaling": "dynamic-ntk"}
LLAMA3 = {"rotary_scaling": "llama3", "rotary_pairs": "halves"}
YARN = {"rotary_scaling": "yarn"}


@fault(
    "rotary.base-not-read", "base", seam="rotary_base", origin="M131", choices={"rotary_base": 5e5}
)
def base_not_read(self: Hooks) -> float:
    """The base of the configuration is not read, and 10000 is used. Far tokens are confused."""
    return 10_000.0


@fault("rotary.base-ten-times", "base", seam="rotary_base", origin="M131")
def base_ten_times(self: Hooks) -> float:
    """The base is that of another model, 100000. All pairs but the first turn too slowly."""
    return 10 * self.correct.rotary_base()


@fault("rotary.llama3-ignored", "scaling", seam="scale_turns", origin="M070", choices=LLAMA3)
def llama3_ignored(self: Hooks, frequencies: Tensor, base: float, columns: int) -> Tensor:
    """The rule is read and never applied. Long texts turn up to eight times too far."""
    return frequencies


@fault(
    "rotary.linear-ignored",
    "scaling",
    seam="scale_turns",
    origin="M071",
    choices={"rotary_scaling": "linear"},
)
def linear_ignored(self: Hooks, frequencies: Tensor, base: float, columns: int) -> Tensor:
    """Frequencies are not divided by the factor. Positions are beyond those of training."""
    return frequencies


@fault(
    "rotary.linear-multiplied",
    "scaling",
    seam="scale_turns",
    choices={"rotary_scaling": "linear"},
)
def linear_multiplied(self: Hooks, frequencies: Tensor, base: float, columns: int) -> Tensor:
    """Frequencies are multiplied by the factor. Positions are stretched and not squeezed."""
    return frequencies * self.rotary_factor()


@fault("rotary.scaled-without-being-asked", "scaling", seam="scale_turns", origin="M089")
def scaled_without_being_asked(
    self: Hooks, frequencies: Tensor, base: float, columns: int
) -> Tensor:
    """Positions are halved though nothing is scaled. Every model without scaling is wrong."""
    return self.correct.scale_turns(frequencies, base, columns) / 2


@fault("rotary.llama3-bands-exchanged", "scaling", seam="llama3_ramp", choices=LLAMA3)
def llama3_bands_exchanged(self: Hooks, frequencies: Tensor) -> Tensor:
    """Fast pairs are divided and slow ones kept. Neighbours become hard to tell apart."""
    return 1 - self.correct.llama3_ramp(frequencies)


@fault(
    "rotary.llama3-without-middle-band",
    "scaling",
    seam="llama3_ramp",
    origin="M070",
    choices=LLAMA3,
)
def llama3_without_middle_band(self: Hooks, frequencies: Tensor) -> Tensor:
    """The band in the middle is divided like the slow one. Medium distances are off."""
    return self.correct.llama3_ramp(frequencies).floor()


@fault("rotary.yarn-ramp-by-columns", "scaling", seam="pair_that_turns", choices=YARN)
def yarn_ramp_by_columns(self: Hooks, full: float, columns: int, base: float) -> float:
    """The ramp is placed by columns and not by pairs. Too many pairs keep their frequency."""
    return 2 * self.correct.pair_that_turns(full, columns, base)


@fault(
    "rotary.yarn-mixed-the-wrong-way",
    "scaling",
    seam="mix_turns",
    origin="pytorch/torchtitan PR#3787",
    choices=YARN,
)
def yarn_mixed_the_wrong_way(self: Hooks, own: Tensor, divided: Tensor, kept: Tensor) -> Tensor:
    """Fast pairs are divided and slow ones kept. Short distances are squeezed."""
    return self.correct.mix_turns(divided, own, kept)


@fault(
    "rotary.ntk-without-power",
    "scaling",
    seam="scale_base",
    choices={"rotary_scaling": "ntk"},
)
def ntk_without_power(self: Hooks, base: float, columns: int, length: int) -> float:
    """The base is multiplied by the factor, without the power r/(r - 2). Slow pairs are off."""
    return base * self.rotary_factor()


@fault(
    "rotary.dynamic-never-adapts", "scaling", seam="dynamic_factor", origin="M089", choices=DYNAMIC
)
def dynamic_never_adapts(self: Hooks, factor: float, length: int) -> float:
    """The length of the text is not looked at. Long texts are not scaled at all."""
    return 1.0


@fault(
    "rotary.dynamic-below-the-trained-length",
    "scaling",
    seam="dynamic_factor",
    origin="M091",
    choices=DYNAMIC,
)
def dynamic_below_the_trained_length(self: Hooks, factor: float, length: int) -> float:
    """The formula is applied to short texts as well. Their base is far too small."""
    return max(factor * length / self.trained_length() - (factor - 1), 0.1)


@fault(
    "rotary.dynamic-length-of-the-heads",
    "scaling",
    seam="longest_place",
    origin="M089",
    choices=DYNAMIC,
    models=("fused",),
)
def dynamic_length_of_the_heads(self: Hooks, places: Tensor, x: Tensor) -> int:
    """The number of heads is taken for the length of the text. It never adapts."""
    return x.shape[1] - 1


@fault(
    "rotary.dynamic-length-of-the-call",
    "one-token",
    seam="longest_place",
    origin="M089",
    choices=DYNAMIC,
    models=("fused",),
)
def dynamic_length_of_the_call(self: Hooks, places: Tensor, x: Tensor) -> int:
    """The tokens of one call are taken for the whole text. Decoding is never scaled."""
    return x.shape[2] - 1


@fault(
    "rotary.yarn-factor-left-out", "magnitude", seam="turn_magnitude", origin="M074", choices=YARN
)
def yarn_factor_left_out(self: Hooks) -> float:
    """Sines and cosines are not multiplied by 0.1 ln(s) + 1. All scores are too small."""
    return 1.0


@fault(
    "rotary.given-factor-dropped",
    "magnitude",
    seam="turn_magnitude",
    origin="M073",
    choices={**YARN, "rotary_magnitude": 1.0},
)
def given_factor_dropped(self: Hooks) -> float:
    """A factor that is given is dropped for that of the formula. All scores are too large."""
    return 0.1 * float(torch.tensor(self.rotary_factor()).log()) + 1.0


@fault("rotary.factor-squared", "magnitude", seam="turn_magnitude", origin="M074", choices=YARN)
def factor_squared(self: Hooks) -> float:
    """The factor is applied twice. Scores have it to the fourth power."""
    return self.correct.turn_magnitude() ** 2


@fault(
    "rotary.factor-on-cosines-alone", "norm-kept", seam="turn_waves", origin="M074", choices=YARN
)
def factor_on_cosines_alone(self: Hooks, angles: Tensor) -> Pair:
    """Cosines are multiplied by the factor and sines are not. Norms depend on the position."""
    cosines, sines = self.correct.turn_waves(angles)
    return cosines, sines / self.turn_magnitude()


@fault(
    "rotary.yarn-with-the-base-of-ntk",
    "scaling",
    seam="scale_base",
    origin="paiml/aprender PR#2161",
    choices=YARN,
)
def yarn_with_the_base_of_ntk(self: Hooks, base: float, columns: int, length: int) -> float:
    """The base is that of NTK scaling. Pairs that should keep their frequency turn too slowly."""
    power = columns / (columns - 2) if columns > 2 else 1.0
    return base * float(self.rotary_factor() ** power)


@fault(
    "rotary.yarn-as-linear",
    "scaling",
    seam="yarn_ramp",
    origin="rasbt/LLMs-from-scratch PR#940",
    choices=YARN,
)
def yarn_as_linear(self: Hooks, columns: int, base: float, pairs: int) -> Tensor:
    """Positions are divided for all pairs alike. Long texts become gibberish after a while."""
    return torch.zeros(pairs, dtype=torch.float64)


@fault(
    "rotary.dynamic-constant",
    "scaling",
    seam="dynamic_factor",
    origin="vllm-project/vllm PR#41301",
    choices=DYNAMIC,
)
def dynamic_constant(self: Hooks, factor: float, length: int) -> float:
    """The longest text that is possible is taken for the length. The base is a constant."""
    return factor * factor - (factor - 1)


@fault(
    "rotary.extended-rows-not-scaled",
    "scaling",
    seam="turn_angles",
    origin="sgl-project/sglang PR#35171",
    choices={"rotary_scaling": "linear"},
)
def extended_rows_not_scaled(self: Hooks, places: Tensor, frequencies: Tensor) -> Tensor:
    """Rows that a table of sixteen is extended by lack the factor. Short texts are right."""
    angles = self.correct.turn_angles(places, frequencies)
    return torch.where((places >= 16)[..., None], angles * self.rotary_factor(), angles)
