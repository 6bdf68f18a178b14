"""The backend of a model that was read whole: its adapter is code, and is written out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from attentest.harness.reproduction import Action, contract_script
from attentest.results.verdict import Location
from attentest_spec.torch import TorchBackend


class Written(Protocol):
    """The code of an adapter."""

    def loader(self) -> str:
        """Return the code without comments, as a reproduction begins."""

    def text(self, said: Iterable[str] = ()) -> str:
        """Return the whole file; `said` are comments on what was inferred."""


@dataclass(frozen=True, kw_only=True)
class AdaptedWhole(TorchBackend):
    """A backend made of a whole model; `adapter` is its code, `understood` how it was inferred.

    `assumed` are the sentences of it that may be wrong, and `summary` is one line with the rest.
    `fits` says that the measured choices give its numbers; `mistake` is the one of the catalogue
    that gives them otherwise, "" for none, and `mistaken` the line of one that explains them.
    """

    understood: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    summary: str = ""
    fits: bool = True
    mistake: str = ""
    mistaken: Location | None = None
    adapter: Written

    def reproduction_script(self, actions: Sequence[Action]) -> str:
        """Return code that repeats `actions` on the user's own model, with the adapter in it."""
        return contract_script(self.adapter.loader(), actions)

    def written(self) -> str:
        """Return the adapter as the text of a Python file."""
        return self.adapter.text(self.understood)
