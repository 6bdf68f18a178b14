"""The backend that a function which decodes becomes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from attentest.harness.reproduction import Action, contract_script
from attentest.targets.adapt.reading import Reading
from attentest.targets.adapt.writing.adapted import adapted_file, loader
from attentest.targets.origin import Origin
from attentest_spec.torch import TorchBackend


@dataclass(frozen=True, kw_only=True)
class AdaptedSearch(TorchBackend):
    """A backend made of a function that decodes, which is at `place`, read by `options`."""

    understood: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    summary: str = ""
    place: Origin
    options: Mapping[str, Any] = field(default_factory=dict)

    def reproduction_script(self, actions: Sequence[Action]) -> str:
        """Return code that repeats `actions`."""
        return contract_script(loader(self.place, self.options), actions)

    def written(self) -> str:
        """Return the adapter as the text of a Python file."""
        options = {**self.options, "choices": dict(self.choices)}
        return adapted_file(self.name, self.place, options, self.understood)


def options_of(component: str, arguments: Mapping[str, str], reading: Reading) -> Mapping[str, Any]:
    """Return the options by which a function is read again in the same way."""
    said = {"given": dict(reading.given), "layout": reading.layout, "strict": reading.strict}
    return {"component": component, "arguments": dict(arguments), **said}
