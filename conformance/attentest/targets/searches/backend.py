"""The backend that a function which decodes becomes."""

from collections.abc import Sequence
from dataclasses import dataclass

from attentest.harness.reproduction import Action, contract_script
from attentest.targets.adapt.reading import Reading
from attentest.targets.origin import Origin
from attentest_spec.torch import TorchBackend


@dataclass(frozen=True, kw_only=True)
class AdaptedSearch(TorchBackend):
    """A backend made of a function that decodes; `loader` is code that adapts it again."""

    understood: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    summary: str = ""
    loader: str = ""

    def reproduction_script(self, actions: Sequence[Action]) -> str:
        """Return code that repeats `actions`."""
        return contract_script(self.loader, actions)


def loader_of(place: Origin, component: str, reading: Reading) -> str:
    """Return code that adapts the function at `place` again."""
    options = {"component": component, "arguments": dict(reading.arguments)}
    options |= {"given": dict(reading.given), "layout": reading.layout}
    given = ", ".join(f"{key}={value!r}" for key, value in options.items() if value)
    adapted = f"backend = attentest.adapted({place.expression}, {given})"
    return "\n".join([*place.imports, "import attentest", "", adapted])
