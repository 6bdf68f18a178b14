"""Tables of rotary positions that are right in float32, and wrong after a cast of the module."""

from dataclasses import replace

import numpy as np

from attentest.targets.adapt.rotary.forms import Form, Held
from attentest.targets.adapt.rotary.measuring import GIVEN, SIZES, X, answer, precisions
from attentest_spec import Choices, Setting
from attentest_spec.rotary import rotary
from attentest_spec.setting import Floats, Tokens

_HALVES = ("bfloat16", "float16")
_LENGTH = 3000
"""Positions up to which the tables are compared: the angles of the last ones need more digits."""

_ROUNDING = 0.02
"""The largest relative difference that rounding of the cosines, of x and of the sum explains.

That of bfloat16 is a few times 0.004; rounded frequencies turn far positions by more, most bases by
much more.
"""

AS_FLOAT32 = (
    "assumed that its fixed arrays stay in float32: cast to {}, as module.to does, far positions "
    "are wrong, which --strict reports"
)
PROMOTED = "{}; its output has another precision than x then, and is not judged in {}"


def with_single_tables(form: Form, choices: Choices) -> tuple[Form, str]:
    """Return `form` with buffers that stay in float32 where only their cast makes it wrong.

    With what is assumed, in a sentence, "" for nothing.
    """
    if not isinstance(form.build(SIZES), Held):
        return form, ""
    halves = [one for one in precisions(form) if one in _HALVES]
    single = replace(form, single_tables=True)
    wrong = [one for one in halves if not _turns(form, choices, one)]
    if not wrong:
        return form, ""
    said, kept = AS_FLOAT32.format(wrong[0]), precisions(single)
    if promoted := [one for one in halves if one not in kept]:
        return single, PROMOTED.format(said, " and ".join(promoted))
    return (single, said) if all(_turns(single, choices, one) for one in wrong) else (form, "")


def _turns(form: Form, choices: Choices, precision: str) -> bool:
    """Say whether `form` turns x in `precision` at far positions, up to rounding."""
    x, positions = _far(form)
    sizes = SIZES.but(max_length=_LENGTH)
    found = answer(form, x, positions, precision, sizes)
    if found is None:
        return False
    expected = rotary(Setting(sizes, choices), x, positions)
    return bool(np.abs(found - expected).max() <= _ROUNDING * np.abs(x).max())


def _far(form: Form) -> tuple[Floats, Tokens | None]:
    """Return an input, and its positions where they can be given."""
    if form.style not in GIVEN:
        return np.resize(X, (1, 1, _LENGTH, X.shape[-1])), None
    ends = _LENGTH - X.shape[2]
    return X, np.arange(ends, _LENGTH)[None].repeat(len(X), axis=0)
