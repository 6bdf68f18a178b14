"""A backend's whole model, built at given sizes, behind the guard."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from attentest.harness.errors import Absent, BackendError, NotConvertible
from attentest.harness.subject import Answer, guarded
from attentest.results.text import line
from attentest_spec import Backend, Part, Sizes, Stateful
from attentest_spec.precision import PRECISIONS
from attentest_spec.setting import Array

T = TypeVar("T")
Shapes = dict[str, tuple[int, ...]]


class Built:
    """One freshly built model; whatever it raises becomes a NotConvertible with the reason."""

    def __init__(self, backend: Backend, whole: str, sizes: Sizes, precision: str) -> None:
        """Build the model of `backend` at `sizes`; refuse one whose state cannot be read.

        It is the component `whole`.
        """
        self.name = line(str(backend.name))
        self.part: Part = self._guarded(
            f"building the model at {sizes}",
            lambda: backend.build(whole, sizes, precision=precision),
        )
        if not isinstance(self.part, Stateful):
            raise NotConvertible(
                f"The state of {self.name} cannot be read by its own names: its parts have no "
                f"`state` and `restore` (see attentest_spec.Stateful), so its checkpoints cannot "
                f"be converted."
            )
        self._state: Stateful = self.part

    def state(self) -> dict[str, Array]:
        """Return everything it saves, by its own names."""
        return self._guarded("reading its state", self._state.state)

    def restore(self, state: Mapping[str, Array]) -> None:
        """Set everything it saves."""
        self._guarded("setting its state", lambda: self._state.restore(state))

    def export(self) -> dict[str, Array]:
        """Return its canonical parameters."""
        return self._guarded("exporting its parameters", self.part.export)

    def load(self, parameters: Mapping[str, Array]) -> None:
        """Set its canonical parameters."""
        self._guarded("loading its parameters", lambda: self.part.load(parameters))

    def output(self, *inputs: Array | None, method: str = "") -> Array:
        """Return what the model, or one of its methods, computes."""
        answer = self._guarded("calling it", lambda: self.part(*inputs, method=method))
        return Answer.of(answer).output

    def _guarded(self, doing: str, action: Callable[[], T]) -> T:
        try:
            with guarded(doing):
                return action()
        except (BackendError, Absent) as failure:
            raise NotConvertible(f"{self.name} cannot be converted: {failure}.") from failure


def finest(*backends: Backend) -> str:
    """Return the finest precision that all `backends` compute in."""
    shared = (one for one in PRECISIONS if all(one in each.limits.precisions for each in backends))
    return next(shared, "float32")


def shapes_of(state: Mapping[str, Array]) -> Shapes:
    """Return the shape of every entry."""
    return {name: array.shape for name, array in state.items()}
