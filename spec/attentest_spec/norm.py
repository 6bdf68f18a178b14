"""The norm of layers, stacks and whole models: a layer norm, or one without a mean."""

from typing import Annotated

from attentest_spec.layer_norm import layer_norm
from attentest_spec.rms_norm import rms_norm
from attentest_spec.setting import Floats, Setting


def norm(given: Setting, x: Annotated[Floats, "*rows D"]) -> Annotated[Floats, "*rows D"]:
    """Return the rows of x under the norm that the choice `norm_kind` names; shapes (.., D)."""
    return rms_norm(given, x) if given.choices.norm_kind == "rms" else layer_norm(given, x)
