"""The record of an example: what was done to a backend, in words and as code that repeats it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from types import NoneType
from typing import Annotated, Any

import numpy as np

from attentest.harness.errors import Violation
from attentest.results.verdict import Counterexample
from attentest_spec import Part, Sizes, registry
from attentest_spec.contract import Input
from attentest_spec.setting import Array

LONGEST = 120_000
"""Characters that a reproduction may have before it stops being pasteable."""


@dataclass(frozen=True)
class Build:
    """The building of a part; `part` is None where that raised."""

    number: int
    component: str
    sizes: Sizes
    precision: str
    device: str
    part: Part | None = None


@dataclass(frozen=True)
class Load:
    """The loading of canonical parameters into a part."""

    number: int
    parameters: Mapping[str, Array]


@dataclass(frozen=True)
class Call:
    """A call of a part, or of a method of it, with inputs in its precision."""

    number: int
    inputs: tuple[Input, ...]
    method: str = ""


@dataclass(frozen=True)
class Pull:
    """The pulling of a cotangent back through a part."""

    number: int
    inputs: tuple[Input, ...]
    cotangent: Array


@dataclass(frozen=True)
class Request:
    """A request for a capability of a part: the call `name(*given, **named)`, "" for anything else.

    `made` is the number of the part that it gave, None where it gave none.
    """

    number: int
    doing: str
    name: str = ""
    given: tuple[Any, ...] = ()
    named: Mapping[str, Any] | None = None
    made: int | None = None


Action = Build | Load | Call | Pull | Request
Script = Callable[[Sequence[Action]], str]
"""A function that writes actions as code; a backend may bring one as `reproduction_script`."""


class Record:
    """The actions of the current example."""

    def __init__(self, backend: str, script: Script | None = None) -> None:
        """Record what is done to the backend called `backend`, which `script` writes as code."""
        self.backend = backend
        self.loader = ""
        self._script = script
        self._actions: list[Action] = []

    def clear(self) -> None:
        """Start over with a new example."""
        self._actions.clear()

    def add(self, action: Action) -> None:
        """Record an action, before it is taken."""
        self._actions.append(action)

    def attach(self, part: Part) -> None:
        """Keep the `part` that the last action, a build, gave."""
        last = self._actions[-1]
        assert isinstance(last, Build)
        self._actions[-1] = replace(last, part=part)

    def note(self, doing: str) -> None:
        """Record what is no action on a part."""
        self.add(Request(0, doing))

    def counterexample(self, violation: Violation | None = None) -> Counterexample:
        """Return what was recorded, with the arrays of `violation`."""
        return Counterexample(
            steps=tuple(_words(one) for one in self._actions if _words(one)),
            code=self._code(),
            actual=_shown(violation.actual if violation else None),
            expected=_shown(violation.expected if violation else None),
        )

    def _code(self) -> str:
        try:
            if self._script is not None:
                code = self._script(self._actions)
            else:
                code = contract_script(self.loader or _by_name(self.backend), self._actions)
        except Exception as failure:  # values that a user gave are written by their own code
            return f"# could not be written as code ({type(failure).__name__}); see the steps"
        return code if len(code) < LONGEST else "# too large to paste; see the steps"


def request(
    number: int, doing: str, action: Callable[[Any], Any], made: int | None = None
) -> Request:
    """Return `action` as a request, from the call that it makes on a part that only listens."""
    listener = _Listener()
    with suppress(Exception):  # an action that does more cannot be written as one call
        if action(listener) is listener.answer and len(listener.calls) == 1:
            name, given, named = listener.calls[0]
            if all(isinstance(one, _PLAIN) for one in (*given, *named.values())):
                return Request(number, doing, name, given, named, made)
    return Request(number, doing, made=made)


_PLAIN = (str, int, float, NoneType)


class _Listener:
    """A replacement of a part that records the calls of its methods."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.answer = object()

    def __getattr__(self, name: str) -> Callable[..., object]:
        def call(*given: Any, **named: Any) -> object:
            self.calls.append((name, given, named))
            return self.answer

        return call


def contract_script(loader: str, actions: Sequence[Action]) -> str:
    """Return code that repeats `actions` through the contract; `loader` defines `backend`."""
    body = "\n".join(code for one in actions for code in _code_of(one))
    imports = ["import numpy as np"]
    if "bfloat16" in body:
        imports.append("import ml_dtypes  # brings NumPy the name bfloat16")
    imports.append("from attentest_spec import Sizes")
    return "\n".join([*imports, *loader.splitlines(), "", body])


@cache
def _by_name(backend: str) -> str:
    if backend in registry.names():
        return f"from attentest_spec import registry\n\nbackend = registry.load({backend!r})"
    return f"\n# backend: the object called {backend!r} that was given to be judged"


def variable(number: int, name: str = "part") -> str:
    """Return the name of the variable that holds the part `number`."""
    return f"{name}_{number + 1}" if number else name


def arguments(given: Sequence[Any], named: Mapping[str, Any] | None) -> str:
    """Return the arguments of a call as code."""
    return ", ".join([*map(repr, given), *(f"{k}={v!r}" for k, v in (named or {}).items())])


def _code_of(action: Action) -> list[str]:
    """Return the lines that repeat `action` through the contract."""
    part = variable(action.number)
    match action:
        case Build(_, component, sizes, precision, device):
            settings = "" if precision == "float64" else f", precision={precision!r}"
            settings += "" if device == "cpu" else f", device={device!r}"
            return [f"{part} = backend.build({component!r}, Sizes({_sizes(sizes)}){settings})"]
        case Load(_, parameters) if parameters:
            rows = (f"    {name!r}: {literal(values)}," for name, values in parameters.items())
            return [f"{part}.load({{", *rows, "})"]
        case Call(_, inputs, method):
            last = [f"    method={method!r},"] if method else []
            return [f"print({part}(", *_rows(inputs), *last, "))"]
        case Pull(_, inputs, cotangent):
            return [f"print({part}.vjp((", *_rows(inputs), f"),\n    {literal(cotangent)}", "))"]
        case Request(name="", made=None):
            return [f"# then: {action.doing}"]
        case Request(name="", made=int(made)):
            return [f"{variable(made)} = {part}  # then: {action.doing}"]
        case Request(_, _, name, given, named, made):
            call = f"{part}.{name}({arguments(given, named)})"
            if name in ("train", "eval"):
                return [call]
            return [f"print({call})" if made is None else f"{variable(made)} = {call}"]
    return []


def _words(action: Action) -> str:
    match action:
        case Build(_, component, sizes, precision):
            shown = _sizes(sizes, _without_effect(component)) or "default sizes"
            return f"build {component} with {shown} in {precision}"
        case Load(_, parameters):
            return f"load {len(parameters)} parameters" if parameters else ""
        case Call(_, inputs, method):
            return f"call it{' (' + method + ')' if method else ''} with {shapes(inputs)}"
        case Pull(_, inputs):
            return f"pull a gradient back to {shapes(inputs)}"
        case Request(_, doing):
            return doing


def _sizes(sizes: Sizes, without: Collection[str] = ()) -> str:
    """Return the sizes that are no defaults, as arguments; `without` are left out."""
    defaults = asdict(Sizes())
    changed = {
        name: value
        for name, value in asdict(sizes).items()
        if value != defaults[name] and name not in without
    }
    return arguments((), changed)


_OF_TOKENS = ("source_vocabulary", "target_vocabulary", "source_pad", "target_pad")
_OF_HEADS = ("heads", "kv_heads")
_WITHOUT_TOKENS = ("multi_head_attention", "positional_encoding", "residual", "rotary")
_WITHOUT_HEADS = ("feed_forward", "mixture_of_experts", "layer_norm", "rms_norm")
_LAYERS = ("encoder", "encoder_layer", "decoder", "decoder_layer", "causal_layer")


def _without_effect(component: str) -> tuple[str, ...]:
    """Return the sizes that change nothing of `component`: a sentence need not name them."""
    if component in _WITHOUT_HEADS:
        return (*_OF_TOKENS, *_OF_HEADS)
    return _OF_TOKENS if component in (*_WITHOUT_TOKENS, *_LAYERS) else ()


def literal(value: Input) -> str:
    """Return Python code for `value`."""
    if not isinstance(value, np.ndarray):
        return repr(value)
    if not value.size:
        return f"np.zeros({value.shape}, dtype={str(value.dtype)!r})"
    text = f"np.array({numbers(value, 'np')})"
    if value.dtype not in (np.bool_, np.int64, np.float64):
        text += f".astype({str(value.dtype)!r})"
    if value.flags.c_contiguous:
        return text
    if value.flags.f_contiguous:
        return f"np.asfortranarray({text})"
    wide = [*[(0, 0)] * (value.ndim - 1), (0, 1)]
    return f"np.pad({text}, {wide})[..., :-1]"  # a part of longer rows


def numbers(values: Annotated[Array, "*shape"], library: str) -> str:
    """Return the numbers of `values` (any shape) as nested lists, with NaN of `library`."""
    if values.dtype.kind in "biu":
        return str(values.tolist())
    text = str(values.astype(np.float64).tolist())
    return text.replace("nan", f"{library}.nan").replace("inf", f"{library}.inf")


def _rows(inputs: tuple[Input, ...]) -> list[str]:
    """Return one line of code for each input."""
    return [f"    {literal(value)}," for value in inputs]


def shapes(inputs: tuple[Input, ...]) -> str:
    """Return the shapes of `inputs` in words."""
    return ", ".join(
        str(value.shape) if isinstance(value, np.ndarray) else repr(value) for value in inputs
    )


def _shown(value: Any) -> str:
    if value is None:
        return ""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        array = array.astype(np.float64)
    return np.array2string(array, precision=6, suppress_small=False, threshold=60)
