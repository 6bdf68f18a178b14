"""The formula of the norm of layers, stacks and whole models."""

from attentest.analysis.lines.formula import Formula, Step
from attentest.analysis.lines.formulas.layer_norm import layer_norm
from attentest.analysis.lines.formulas.rms_norm import rms_norm


def norm(formula: Formula, part: str, x: Step) -> Step:
    """Add x under the norm that the choice `norm_kind` names."""
    of_kind = rms_norm if formula.choices.norm_kind == "rms" else layer_norm
    return of_kind(formula, part, x)
