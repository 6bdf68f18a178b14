"""Positions that a call is given, in the forms that its argument may take."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from attentest.targets.language_models.calling import POSITION_FORMS
from attentest.targets.language_models.verifying import TRIED, compared, placed
from attentest.targets.language_models.written import LanguageAdapter
from attentest_spec import Backend
from attentest_spec.contract import POSITION_KINDS

Made = Callable[[LanguageAdapter], Backend]
"""Returns the backend that the code of an adapter defines."""

_DOCUMENTS = (
    "assumed that positions in {} which do not follow on one another begin a document of its own, "
    "as measured without a mask and a cache: consecutive ones are judged"
)


def placings(
    adapter: LanguageAdapter, own: str, doubts: list[str], made: Made
) -> Iterator[tuple[LanguageAdapter, str]]:
    """Yield `adapter` with positions in each form, and what is wrong with it.

    Where those with gaps separate documents, consecutive ones are judged, with one of the `doubts`.
    """
    for form, kinds in (
        ("(B, T)", POSITION_KINDS),
        ("(T), the same for all", ("none", "offset", "shared")),
    ):
        call = replace(adapter.call, positions=own, position_form=POSITION_FORMS[form])
        limits = replace(adapter.limits, positions=tuple(kinds))
        other = replace(adapter, call=call, limits=limits)
        calls = [placed("per-sample" if "per-sample" in kinds else "shared")]
        yield other, compared(made(other), TRIED[0], calls, wide=True)
    call = replace(adapter.call, positions=own, position_form=POSITION_FORMS["(B, T)"])
    other = replace(adapter, call=call)
    packed = replace(other, choices={**adapter.choices, "packed_documents": "by-positions"})
    if not compared(made(packed), TRIED[0], [placed("per-sample")], wide=True):
        doubts.append(_DOCUMENTS.format(own))
        limits = replace(adapter.limits, positions=("none", "offset"))
        yield replace(other, limits=limits), ""
