"""Arguments with the name of the width of a head that hold the number of heads, by the numbers."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from attentest.targets.adapt.construction import Construction
from attentest.targets.adapt.reading import Attempt, Reading, Unclear
from attentest.targets.constants.numbers_read import HEAD_WIDTH_CODE
from attentest.targets.whole import AdaptedWhole

_WIDTH = "d_model/heads"
"""The filling of an argument that is the width of a head."""

_SENTENCE = (
    "assumed that {} is the number of heads, as its numbers show: if it is meant to be the width "
    "of one, this is a mistake"
)
_QUESTION = (
    "{} of {} is the width of a head by its name, and no argument is the number of heads. Its "
    "numbers are those of the formula neither with heads of that width nor with so many heads. "
    "Say which is meant: {} has it judged with so many heads, and --anyway (in Python: "
    "anyway=True) with heads of that width."
)


def with_number_of_heads(found: Any, reading: Reading, read: Callable[[Reading], Any]) -> Any:
    """Return the backend `found`, or the one with so many heads as its width of a head says.

    Only where the numbers of the first are not those of the formula. Raises Unclear where those of
    the second are not either, and nothing else speaks against it.
    """
    own = "" if reading.anyway else _width_alone(found)
    if not own:
        return found
    attempt = Attempt(arguments={"heads": own})
    try:
        other = read(attempt.added(reading))
    except Exception:  # code that a user wrote may raise anything
        return found
    if not other.fits:
        options = f"{attempt.options} (in Python: {attempt.python})"
        raise Unclear(_QUESTION.format(own, found.name, options))
    sentence = _SENTENCE.format(own)
    understood = (other.understood[0], sentence, *other.understood[1:])
    return replace(other, assumed=(*other.assumed, sentence), understood=understood)


def _width_alone(found: Any) -> str:
    """Return the argument that was read as the width of a head where none is their number.

    "" also for a backend whose numbers are those of the formula.
    """
    if getattr(found, "fits", True):
        return ""
    if isinstance(found, AdaptedWhole):
        expression: str = getattr(getattr(found.adapter, "building", None), "expression", "")
        named = re.findall(rf"\b(\w+)={re.escape(HEAD_WIDTH_CODE)}", expression)
        rest = expression.replace(HEAD_WIDTH_CODE, "")
        return named[0] if len(named) == 1 and "sizes.heads" not in rest else ""
    code = getattr(found, "code", None)
    construction = getattr(code, "construction", None)
    if code is None or construction is None or "heads" in code.known:
        return ""
    widths = set(_widths(construction))
    return widths.pop() if len(widths) == 1 else ""


def _widths(construction: Construction) -> Iterator[str]:
    """Yield the arguments that are the width of a head, those of the parts it is built with too."""
    for own, one in construction.fillings.items():
        if isinstance(one.value, Construction):
            yield from _widths(one.value)
        elif one.words == _WIDTH:
            yield own
