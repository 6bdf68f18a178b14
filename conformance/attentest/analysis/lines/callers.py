"""The call that gives another value to a function that computes the right one elsewhere."""

import ast
import linecache
from collections import Counter
from collections.abc import Iterator

from attentest.analysis.lines.alignment import Alignment
from attentest.analysis.lines.explain import Explanation
from attentest.analysis.lines.formula import Step
from attentest.analysis.lines.recording import Operation, Place, Value
from attentest.analysis.lines.search import Finding, carried


def differing_call(alignment: Alignment, operation: Operation) -> int | None:
    """Return the number of the innermost place in which a right call of a line is another one.

    The line is that of `operation`; None where it is right nowhere, or is called alike.
    """
    for other in alignment.recording.operations:
        same = other.name == operation.name and other.places[:1] == operation.places[:1]
        if same and alignment.known.get(other.outputs[0].number):
            both = zip(operation.places, other.places, strict=False)
            return next((n for n, (one, another) in enumerate(both) if one != another), None)
    return None


def maker_within(alignment: Alignment, operation: Operation, wrong: Step) -> Place | None:
    """Return the line that made what `wrong` is made from, where both are of one part.

    The part that lacks its last step is to blame, and not the line that takes its result.
    """
    takes = [one for one in wrong.inputs if one.part and wrong.part.startswith(f"{one.part}.")]
    for value in operation.inputs:
        known = [piece.step for piece in alignment.known.get(value.number, ())]
        if value.made is not None and any(one in known for one in takes):
            return value.made.place
    return None


def giver_of_parameters(alignment: Alignment, operation: Operation, wrong: Step) -> Place | None:
    """Return the call that gives other parameters to a function that is right elsewhere.

    It is the innermost in which the two differ; None where `wrong` takes no parameters. The
    function may be one that `operation` takes the result of.
    """
    parameters = alignment.case.formula.parameters
    if not any(one.name in parameters for one in wrong.inputs):
        return None
    made_of = {one.number for one in wrong.inputs if one.name not in parameters}
    user = _user_of(alignment, made_of, operation) if made_of else operation
    number = differing_call(alignment, user)
    return None if number is None else user.places[number]


def _user_of(alignment: Alignment, made_of: set[int], last: Operation) -> Operation:
    """Return the first operation that makes a wrong value of the steps `made_of`, or the `last`."""
    for one in alignment.recording.operations:
        if one.number >= last.number:
            break
        wrong = one.outputs and not alignment.known.get(one.outputs[0].number)
        if wrong and one.places and made_of <= carried(alignment, one):
            return one
    return last


def takes_each_once(place: Place) -> bool:
    """Say whether the arguments of a function that a line uses are used nowhere else in it.

    Then each has a use of its own, and another value in it is that of the caller.
    """
    function = _function_at(place)
    if function is None:
        return False
    names = _arguments(function)
    uses = Counter(one.id for one in _values(function) if one.id in names)
    here = {one.id for one in _values(function) if one.id in names and _is_at(one, place.line)}
    return bool(here) and all(uses[one] == 1 for one in here)


def knowing(
    alignment: Alignment, operation: Operation, missing: set[int], *, bound: bool = False
) -> Iterator[tuple[int, Place]]:
    """Yield the calls in which a value that is missing is known, the innermost first.

    Where it has to be `bound`, an argument whose name has another value by then is not known.
    """
    look = alignment.case.recording(look_at=operation.number, own=alignment.own)
    alignment.case.run(look)
    known = look.bound_at if bound else look.seen_at
    for number, (place, arrays) in enumerate(zip(operation.places, known, strict=False)):
        pieces = (piece for one in arrays for piece in alignment.matcher.pieces(one))
        if any(piece.step.number in missing for piece in pieces):
            yield number, place


def is_residual_sum(step: Step) -> bool:
    """Say whether a step adds a sublayer to its residual input."""
    return step.name.endswith("residual sum")


def lacks_sum(alignment: Alignment, operation: Operation, wrong: Step) -> bool:
    """Say whether `wrong` is a residual sum, and `operation` adds nothing to the branch of it."""
    taken = {
        piece.step.number
        for value in operation.inputs
        for piece in alignment.known.get(value.number, ())
    }
    return is_residual_sum(wrong) and not taken & {one.number for one in wrong.inputs}


def makers_of_branch(alignment: Alignment, operation: Operation, wrong: Step) -> list[Place]:
    """Return the lines that made what `operation` takes and knew the residual input that it lacks.

    `wrong` is the step that it lacks. There are none where it is no residual sum, and where the
    line that takes the branch knows the residual input too, unless a later sum takes the branch as
    its own residual input: it is meant to be the sum then. Calls that both lines are part of could
    not add it.
    """
    if not is_residual_sum(wrong):
        return []
    for value in operation.inputs:
        taken = {piece.step.number for piece in alignment.known.get(value.number, ())}
        missing = {one.number for one in wrong.inputs} - taken
        last = value.dropped or value.made
        if last is None or len(missing) != 1:
            continue
        takes, made = (
            [place for _, place in knowing(alignment, one, missing, bound=True)]
            for one in (operation, last)
        )
        if _is_added(alignment, value, operation) or all(place in last.places for place in takes):
            return [place for place in made if place not in operation.places]
    return []


def _is_added(alignment: Alignment, value: Value, apart: Operation) -> bool:
    """Say whether a sum takes `value`, and is another one than the operation `apart`."""
    return any(
        value in one.inputs and one is not apart and one.name.strip("_") in ("add", "iadd", "radd")
        for one in alignment.recording.operations
    )


def lacks_last_branch(alignment: Alignment, finding: Finding) -> bool:
    """Say whether the output is the input of the last residual connection."""
    of_output = alignment.final is not None and finding.operation is alignment.final.made
    return of_output and finding.unchanged is not None and is_residual_sum(finding.step)


def maker_of_last_branch(alignment: Alignment, finding: Finding) -> Place | None:
    """Return the line that made the branch which the output lacks, None where none does."""
    missing = [one for one in finding.step.inputs if one is not finding.unchanged]
    made = [
        operation.place
        for operation in alignment.recording.operations
        if operation.number > finding.operation.number and operation.outputs
        for piece in alignment.matcher.pieces(operation.outputs[0].array)
        if piece.step in missing
    ]
    return next((one for one in reversed(made) if one is not None), None)


def giver_of_axis(operation: Operation, place: Place | None, said: Explanation) -> Place | None:
    """Return the call that gives the wrong axis of `place` to its function, else `place`."""
    places = operation.places
    if not (said.exact and said.computed.startswith(_OVER_AN_AXIS)):
        return place
    while place in places[:-1] and _takes_its_axis(place):
        place = places[places.index(place) + 1]
    return place


_OVER_AN_AXIS = "softmax of the scores over"
"""The first words of what is computed along another axis."""


def _takes_its_axis(place: Place) -> bool:
    """Say whether a line computes along an axis that is an argument of its function."""
    function = _function_at(place)
    if function is None:
        return False
    names = _arguments(function)
    return any(
        one.arg in _AXES and isinstance(one.value, ast.Name) and one.value.id in names
        for one in ast.walk(function)
        if isinstance(one, ast.keyword) and _is_at(one.value, place.line)
    )


_AXES = ("dim", "axis")
"""Keywords of functions that compute along an axis."""


def _function_at(place: Place) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """Return the function that a line is in, None where its source is not known."""
    try:
        tree = ast.parse("".join(linecache.getlines(place.file)))
    except SyntaxError:
        return None
    return next(
        (
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and place.function in (node.lineno, *(one.lineno for one in node.decorator_list))
        ),
        None,
    )


def _arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return {one.arg for one in given}


def _values(node: ast.AST) -> Iterator[ast.Name]:
    """Yield the names that are read as values, and not for an attribute as `x.shape`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Attribute) and isinstance(child.value, ast.Name):
            continue
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load):
            yield child
        yield from _values(child)


def _is_at(name: ast.expr, line: int) -> bool:
    return name.lineno <= line <= (name.end_lineno or name.lineno)
