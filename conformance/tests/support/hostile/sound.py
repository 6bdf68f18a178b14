"""Sound attention and feed-forward of NumPy alone: what the hostile backends spoil."""

import os
import socket
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from attentest_spec import Limits, Setting, Sizes
from attentest_spec.attention import attention
from attentest_spec.choices import PAPER
from attentest_spec.oracles import ORACLES
from attentest_spec.parameters import draw

_ARRIVED: list[socket.socket] = []  # kept open: that it closes says that the process has ended


def announce() -> None:
    """Say to the test that waits for it that this process is where it misbehaves."""
    if port := os.environ.get("HOSTILE_PORT"):
        _ARRIVED.append(socket.create_connection(("127.0.0.1", int(port))))


def answer(query: Any, key: Any, value: Any, mask: Any) -> tuple[Any, Any]:
    return attention(Setting(), query, key, value, mask)


class Part:
    """A built part; `spoilt` answers in place of it, and may ask `self.answer`."""

    capabilities: tuple[str, ...] = ("mode",)

    def __init__(self, component: str, sizes: Sizes, spoilt: Callable[..., Any] | None) -> None:
        self.component, self.sizes, self.spoilt = component, sizes, spoilt
        self.parameters = draw(component, sizes, PAPER, np.random.default_rng(0))

    def __call__(self, *inputs: Any, method: str = "") -> Any:
        return self.spoilt(*inputs) if self.spoilt else self.answer(*inputs)

    def answer(self, *inputs: Any) -> Any:
        setting = Setting(self.sizes, parameters=self.parameters)
        return ORACLES[self.component](setting, *inputs)

    def load(self, parameters: Any) -> None:
        self.parameters = dict(parameters)

    def export(self) -> Any:
        return dict(self.parameters)

    def train(self) -> None:
        pass

    def eval(self) -> None:
        pass


class Backend:
    """A backend that provides `components`; `spoilt` answers for its parts."""

    title = "sound but for one thing"
    choices: ClassVar[dict[str, Any]] = {}
    limits = Limits(precisions=("float64",))

    def __init__(
        self,
        spoilt: Callable[..., Any] | None = None,
        *,
        name: str = "hostile",
        components: tuple[str, ...] = ("attention",),
    ) -> None:
        self.name, self.components, self.spoilt = name, components, spoilt

    def build(self, component: str, sizes: Sizes, **_: Any) -> Any:
        return Part(component, sizes, self.spoilt)


backend = Backend(name="sound")
