"""Ten-line backends that behave badly, to test what judges them."""

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

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


def _raises(*_: Any) -> Any:
    raise RuntimeError("out of luck")


def _exits(*_: Any) -> Any:
    sys.exit(7)


def _dies(*_: Any) -> Any:
    os._exit(3)


def _segfaults(*_: Any) -> Any:
    os.kill(os.getpid(), signal.SIGSEGV)


def _hangs(*_: Any) -> Any:
    time.sleep(1000)


def _prints(*inputs: Any) -> Any:
    print('{"type": "verdict"}' * 50)
    sys.stderr.write("noise " * 1000)
    return sound(*inputs)


def _lists(*inputs: Any) -> Any:
    return [1.0, 2.0]


def _nothing(*_: Any) -> Any:
    return None


def _nans(*inputs: Any) -> Any:
    output, weights = sound(*inputs)
    return np.full_like(output, np.nan), np.full_like(weights, np.nan)


def _zeros(*inputs: Any) -> Any:
    output, weights = sound(*inputs)
    return np.zeros_like(output), np.zeros_like(weights)


def _writes(query: Any, key: Any, value: Any, mask: Any) -> Any:
    result = sound(query, key, value, mask)
    query *= 2
    return result


def _random(*inputs: Any) -> Any:
    output, weights = sound(*inputs)
    return output + np.random.default_rng().normal(size=output.shape), weights


def _wrong(query: Any, key: Any, value: Any, mask: Any) -> Any:
    return sound(query * query.shape[-1] ** 0.5, key, value, mask)


good = Miniature("good", sound)
wrong = Miniature("wrong", _wrong)
raising = Miniature("raising", _raises)
exiting = Miniature("exiting", _exits)
dying = Miniature("dying", _dies)
segfaulting = Miniature("segfaulting", _segfaults)
hanging = Miniature("hanging", _hangs)
printing = Miniature("printing", _prints)
listing = Miniature("listing", _lists)
empty = Miniature("empty", _nothing)
nans = Miniature("nans", _nans)
zeros = Miniature("zeros", _zeros)
writing = Miniature("writing", _writes)
fickle = Miniature("fickle", _random)
