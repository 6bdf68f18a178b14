"""One component of a reference model whose cache is changed, as an unusual implementation."""

from attentest.faults.reference_models import DECLARED, reference_backend
from attentest.faults.reference_models.plain import Plain
from attentest.faults.unusual.member import member
from attentest_spec import Limits
from attentest_spec.choices import Value
from attentest_spec.torch import TorchBackend


def restyled(
    component: str, name: str, model: type[Plain], title: str, **choices: Value
) -> TorchBackend:
    """Return `component` of `model` alone, under the declared choices and `choices`."""
    declared = {**DECLARED, **choices}
    recipe = reference_backend(model, declared).recipes[component]
    return member(name, title, {component: recipe}, declared, Limits())
