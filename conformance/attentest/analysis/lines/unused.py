"""Results that are right, and that no later line uses: `F.relu(x)` without an assignment."""

from attentest.analysis.lines.alignment import Alignment, made_from
from attentest.analysis.lines.formula import Step
from attentest.analysis.lines.recording import Operation

UNUSED = "the expected value, but no later line uses it"


def unused(alignment: Alignment, step: Step) -> Operation | None:
    """Return the user's operation that gives the value of `step` for nothing; None where none does.

    A step whose value is also that of one of its inputs, as under an open mask, shows nothing.
    """
    if alignment.final is None or step.number in alignment.covered or step.is_leaf:
        return None
    used = {value.number for value in made_from(alignment.final)}
    for operation in alignment.called():
        if operation.place is None or any(one.number in used for one in operation.outputs):
            continue
        pieces = (
            one for value in operation.outputs for one in alignment.matcher.pieces(value.array)
        )
        if any(one.step is step and not one.place for one in pieces):
            return operation
    return None
