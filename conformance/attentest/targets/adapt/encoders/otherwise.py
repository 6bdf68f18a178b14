"""Explanations of numbers that no measured option gives."""

from collections.abc import Mapping
from dataclasses import replace

from attentest.analysis.identify import Finding
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.encoders.idle_norms import around_norm
from attentest.targets.adapt.encoders.one_mistake import around_mistake
from attentest.targets.adapt.encoders.part_mistake import around_declared, around_mistake_of_part
from attentest.targets.adapt.parameters.found import FoundTable
from attentest.targets.adapt.reading import Reading
from attentest.targets.epsilons import formula_of_inner_norms
from attentest_spec.components import inside


def explained_otherwise(
    adapter: Adapter,
    found: FoundTable,
    findings: Mapping[str, Finding],
    reading: Reading,
    *,
    guessed: bool,
) -> tuple[FoundTable, bool]:
    """Return `found` with the choices that explain the numbers, and whether something does.

    A norm that is not called, declared choices, and a mistake that no design makes say more than
    the part of a name by which a component is `guessed`.
    """
    component = adapter.component
    found = around_norm(component, found, findings)
    if found.idle:
        return found, True
    if guessed and (near := around_declared(adapter, found, findings, reading.choices)):
        return near, True
    if guessed and (near := around_mistake(component, found, findings)):
        return near, True
    if not reading.strict:
        found = around_mistake_of_part(adapter, found, findings, guessed=guessed)
    if not found.mistake and found.observed is not None and "layer_norm" in inside(component):
        norms = formula_of_inner_norms(found.observed)
        found = replace(found, choices={**norms, **found.choices})
    return found, bool(found.mistake)
