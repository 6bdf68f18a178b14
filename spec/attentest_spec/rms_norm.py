"""RMS normalisation (formula: Zhang and Sennrich 2019, arXiv 1910.07467)."""

from typing import Annotated, Any

import numpy as np

from attentest_spec.setting import Floats, Setting, reported


@reported
def rms_norm(given: Setting, x: Annotated[Floats, "*rows D"]) -> Annotated[Floats, "*rows D"]:
    """Divide every row of x by the root of its mean square, then multiply by the weight.

    x (.., D) gives (.., D); `gain` (D,) is the weight and `bias` (D,) is added where there is one.
    Choices: `rms_epsilon_place`, `rms_epsilon`, `rms_weight`, `rms_bias` and `rms_arithmetic`; in
    single precision, `rms_cast` too. With an epsilon of 0 a row of zeros has no value and gives
    NaN. Source: Zhang and Sennrich 2019, section 3, equation 4.
    """
    single = given.choices.rms_arithmetic == "float32"
    wide: Any = x.astype(np.float32) if single else x
    with np.errstate(invalid="ignore", over="ignore"):  # 0 / 0, and squares beyond float32
        normalised = wide / _divisor(given, wide)
    if given.choices.rms_cast != "after-weight":
        normalised = normalised.astype(np.float64)
    weight = _weight(given)
    scaled = normalised if weight is None else normalised * weight.astype(normalised.dtype)
    bias = given.get("bias")
    result: Floats = (scaled if bias is None else scaled + bias).astype(np.float64)
    return result


def _divisor(given: Setting, x: Any) -> Any:
    """Return what every row is divided by, (.., 1), in the precision of x."""
    epsilon = x.dtype.type(given.choices.rms_epsilon)
    width = x.shape[-1]
    total = np.square(x).sum(axis=-1, keepdims=True)
    match given.choices.rms_epsilon_place:
        case "inside-root":
            return np.sqrt(total / x.dtype.type(width) + epsilon)
        case "added-to-rms":
            return np.sqrt(total / x.dtype.type(width)) + epsilon
        case "floor-of-rms":
            return np.maximum(np.sqrt(total / x.dtype.type(width)), epsilon)
        case _:
            return np.maximum(np.sqrt(total), epsilon) / np.sqrt(x.dtype.type(width))


def _weight(given: Setting) -> Floats | None:
    """Return what the normalised row is multiplied by, (D,), None for nothing."""
    match given.choices.rms_weight:
        case "none":
            return None
        case "one-plus-weight":
            return 1.0 + given["gain"]
        case _:
            return given["gain"]
