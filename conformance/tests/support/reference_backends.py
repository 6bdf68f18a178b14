"""Backends of the reference models: whole, of one component, or with a wrong one."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from attentest.faults.reference_models import REFERENCE_MODELS, reference_backend
from attentest_spec.choices import Value


def built(specimen: str, choices: dict[str, Value]) -> Any:
    return reference_backend(REFERENCE_MODELS[specimen], choices)


def sole(backend: Any, component: str) -> Any:
    return replace(backend, recipes={component: backend.recipes[component]})


def broken(component: str, call: Callable[..., Any]) -> Any:
    whole = built("plain", {})
    recipe = replace(whole.recipes[component], call=call)
    return replace(whole, recipes={component: recipe})
