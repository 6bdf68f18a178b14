"""Queries and keys that are exchanged: each row of the scores belongs to a key.

Where there are as many queries as keys, such scores have the numbers of the right ones, and the
first value that leaves the formula is the softmax over them. The mistake is before it: where the
product is made, or where code gives a query the name of a key.
"""

import ast
import linecache
import re
from collections.abc import Iterator
from typing import NamedTuple

from attentest.analysis.lines.alignment import Alignment
from attentest.analysis.lines.formula import Step
from attentest.analysis.lines.layouts import Order, arranged, orders
from attentest.analysis.lines.matching import Piece
from attentest.analysis.lines.recording import Operation, Place, Value
from attentest_spec.setting import Array

_NAMES = {
    "query": re.compile(r"(?:^|_)x?(?:q+s?|quer(?:y|ies))(?:_|$)", re.IGNORECASE),
    "key": re.compile(r"(?:^|_)x?(?:k+s?|keys?)(?:_|$)", re.IGNORECASE),
}


Made = tuple[Operation, Value]
"""An operation, and the one of its results that is meant."""


class Exchange(NamedTuple):
    """The operation that exchanges both, and the values that undo it, by operation.

    It is `named` where the names in the code say that it is this one.
    """

    operation: Operation
    scores: Step
    puts: dict[int, Array]
    named: bool


def exchanges(alignment: Alignment) -> Iterator[Exchange]:
    """Yield where queries and keys may be exchanged: by the names of both, then in the product."""
    for operation in alignment.called():
        scores, right_way = _transposed(alignment, operation)
        if scores is None or operation.place is None:
            continue
        made = [_made(alignment, value, scores) for value in operation.inputs]
        query, key = (next((one for one in made if one and one[0] == at), None) for at in (0, 1))
        result = {operation.number: right_way}
        if query is None or key is None:
            yield Exchange(operation, scores, result, named=False)
            continue
        wrong, right = _named(query[1], key[1], swapped=True), _named(query[1], key[1])
        puts = _exchanged(query[1], key[1])
        if wrong and puts:
            yield Exchange(min(wrong, key=lambda one: one.number), scores, puts, named=True)
        yield Exchange(operation, scores, result, named=bool(right) and not wrong)


def is_transposed(alignment: Alignment, value: Value) -> bool:
    """Say whether `value` holds numbers of scores, with the keys before the queries."""
    pieces = alignment.known.get(value.number, ())
    return any(_orders(alignment, piece, value.array) for piece in pieces)


def _orders(alignment: Alignment, piece: Piece, array: Array) -> list[Order]:
    """Return the layouts in which `array` is scores, [] where queries may come before keys."""
    query, key = _axes(piece)
    shape = piece.value.shape
    if query < 0 or shape[query] < 2 or shape[query] != shape[key]:
        return []
    close = [
        order
        for order in orders(shape, piece.axes, array.shape)
        if alignment.matcher.close(array, arranged(piece.value, order, array.shape))
    ]
    return close if all(one.index(query) > one.index(key) for one in close) else []


def _axes(piece: Piece) -> tuple[int, int]:
    """Return the axes of the queries, which the formula has before those of the keys; -1 for none.

    In a layer and in a stack the queries have the letter of its sequence.
    """
    key = piece.axes.find("K")
    return (key - 1, key) if key > 0 and piece.axes[key - 1] in "QLTS" else (-1, -1)


def _transposed(alignment: Alignment, operation: Operation) -> tuple[Step | None, Array]:
    """Return the step of scores whose transpose `operation` computes, and them the right way."""
    array = operation.outputs[0].array
    for piece in alignment.known.get(operation.outputs[0].number, ()):
        found = _orders(alignment, piece, array) if len(piece.step.inputs) == 2 else []
        if found and len(operation.outputs) == 1:
            query, key = _axes(piece)
            other = {query: key, key: query}
            order = tuple(other.get(one, one) for one in found[0])
            return piece.step, arranged(piece.value, order, array.shape)
    return None, array


def _made(alignment: Alignment, value: Value, scores: Step) -> tuple[int, list[Made]] | None:
    """Return which input of `scores` a value is, and the operations that made it, the last first.

    They begin where its numbers do.
    """
    for at, step in enumerate(scores.inputs):
        made: list[Made] = []
        while value.made is not None and _is(alignment, value, step):
            made.append((value.made, value))
            value = value.made.inputs[0] if value.made.inputs else Value(-1, value.array)
        if made:
            return at, made
    return None


def _is(alignment: Alignment, value: Value, step: Step) -> bool:
    """Say whether a value has the numbers of `step`, in any layout."""
    return any(piece.step is step for piece in alignment.known.get(value.number, ()))


def _named(query: list[Made], key: list[Made], *, swapped: bool = False) -> list[Operation]:
    """Return the operations whose lines give both their names, or the reverse where `swapped`."""
    sides = ("key", "query") if swapped else ("query", "key")
    return [
        operation
        for made, own, other in ((query, *sides), (key, *sides[::-1]))
        for operation, value in made
        if (name := _name(operation, value)) is not None
        and _NAMES[own].search(name)
        and not _NAMES[other].search(name)
    ]


def _name(operation: Operation, value: Value) -> str | None:
    """Return the name that the line of `operation` assigns its result to; None where it has none.

    Of several results, the name of the one that holds `value`.
    """
    targets = _targets(operation.place)
    if len(operation.outputs) == len(targets):
        return targets[operation.outputs.index(value)]
    return targets[0] if len(targets) == 1 else None


def _targets(place: Place | None) -> list[str]:
    """Return the names that the statement in a line assigns to, [] where it does not."""
    if place is None:
        return []
    try:
        statement = ast.parse(linecache.getline(place.file, place.line).strip()).body[0]
    except (SyntaxError, IndexError):
        return []
    if not isinstance(statement, ast.Assign):
        return []
    (target, *_) = statement.targets
    names = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    return [ast.unparse(one) for one in names]


def _exchanged(query: list[Made], key: list[Made]) -> dict[int, Array]:
    """Return the query in the place of the key and the reverse, by operation; {} where none can."""
    for (first, one), (second, other) in zip(reversed(query), reversed(key), strict=False):
        alone = len(first.outputs) == len(second.outputs) == 1
        if alone and one.array.shape == other.array.shape:
            return {first.number: other.array, second.number: one.array}
    return {}
