"""A sound backend and a wrong one, of NumPy alone; those that misbehave are in `hostile/`."""

from collections.abc import Callable
from typing import Any, ClassVar

from attentest_spec import Limits, Setting
from attentest_spec.attention import attention
from attentest_spec.contract import Input


class Miniature:
    """A backend that provides attention alone, by a function of NumPy arrays."""

    title = "a miniature"
    choices: ClassVar[dict[str, Any]] = {}
    limits = Limits(precisions=("float64",))
    components = ("attention",)

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self.function = function

    def build(self, component: str, sizes: Any, **_: Any) -> Any:
        return MiniaturePart(self.function)


class MiniaturePart:
    capabilities: tuple[str, ...] = ()

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *inputs: Input, method: str = "") -> Any:
        return self.function(*inputs)


def sound(query: Any, key: Any, value: Any, mask: Any) -> Any:
    return attention(Setting(), query, key, value, mask)


def _wrong(query: Any, key: Any, value: Any, mask: Any) -> Any:
    return sound(query * query.shape[-1] ** 0.5, key, value, mask)


good = Miniature("good", sound)
wrong = Miniature("wrong", _wrong)
