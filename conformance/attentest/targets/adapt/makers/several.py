"""A function that makes the masks of both sides at once: what it makes of each side is judged."""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from attentest.results.text import summary
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.makers.maker import CODE, COMPONENTS, FIXED_PAD, FIXED_PADS
from attentest.targets.adapt.names import BATCH_PADS, OFF, ROLES
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.models.written import head_line
from attentest.targets.origin import Origin, origin
from attentest.targets.whole import AdaptedWhole
from attentest_spec import Limits
from attentest_spec.torch import Recipe, TorchBackend

_NAME = re.compile(
    r"(make|create|get|generate|build|compute|prepare)?(the|all|both|src|source|and|tgt|trg|target"
    r"|attention|attn|padding|transformer)*masks?"
)
_EITHER = ("x", "input", "inputids", "y")
"""Names that say nothing of the side."""
_SOURCE, _TARGET = 5, 4


@dataclass(frozen=True)
class _Call:
    """One way to call the function: arguments by role, with the first axis of the tokens."""

    function: str
    source: str
    target: str
    pads: Sequence[str]
    fixed: Mapping[str, Any]
    sequence_first: bool = False

    def code(self, source: str, target: str) -> str:
        """Return the expression of the call."""
        turn = ".T" if self.sequence_first else ""
        given = {self.source: f"{source}{turn}", self.target: f"{target}{turn}"}
        given |= dict.fromkeys(self.pads, "pad") | {one: repr(v) for one, v in self.fixed.items()}
        given |= {one: f"{source}.device" for one in self.fixed if squashed(one) == "device"}
        return f"{self.function}({', '.join(f'{own}={value}' for own, value in given.items())})"


@dataclass(frozen=True)
class _Several:
    """The adapter as code: the masks of each component, as expressions of a `result`."""

    name: str
    found: Origin
    call: _Call
    parts: Mapping[str, str]
    limits: Limits = field(default_factory=Limits)

    def text(self, said: Iterable[str] = ()) -> str:
        """Return the whole file; `said` are comments on what was inferred."""
        return "\n".join([head_line(self.name), "", self.loader(), *(f"# {one}" for one in said)])

    def loader(self) -> str:
        """Return the code without comments, as a reproduction begins."""
        return "\n".join([*self.found.imports, *_IMPORTS, "", self.body()])

    def body(self) -> str:
        """Return the functions and the backend, without imports."""
        made = [self._function(one, code) for one, code in self.parts.items()]
        recipes = ", ".join(f'"{one}": Recipe(build, {one})' for one in self.parts)
        held = {one: v for one, v in vars(self.limits).items() if v != getattr(Limits(), one)}
        limits = ", ".join(f"{one}={value!r}" for one, value in held.items())
        build = f"def build(sizes):\n    return {self.found.expression}\n"
        backend = (
            f'backend = TorchBackend(\n    name="{self.name}",\n    title="{self.name}",\n'
            f"    limits=Limits({limits}),\n    recipes={{{recipes}}},\n)\n"
        )
        return "\n\n".join([build, *made, backend])

    def _function(self, component: str, code: str) -> str:
        inputs, tokens = "tokens, pad", ""
        if component == "causal_mask":
            inputs, tokens = "length", "    tokens = torch.ones(1, length, dtype=torch.int64)\n"
            tokens += "    pad = 0\n" if self.call.pads else ""
        return (
            f"def {component}(make, {inputs}):\n{tokens}"
            f"    result = {self.call.code('tokens', 'tokens')}\n    return {code}\n"
        )


def makes_several(name: str, thing: Any, reading: Reading) -> bool:
    """Say whether `thing` is a function of source and target that is called one of masks."""
    if reading.component not in ("", *COMPONENTS):
        return False
    if not inspect.isfunction(thing) or not _NAME.fullmatch(squashed(name)):
        return False
    return None not in _sides(inspect.signature(thing))


def adapt_several(thing: Any, reading: Reading, name: str, home: ModuleType | None) -> AdaptedWhole:
    """Return the function as a backend of the masks that it makes; Unclear where one is open."""
    with undisturbed():
        return _adapted(thing, reading, name, home)


def _adapted(thing: Any, reading: Reading, name: str, home: ModuleType | None) -> AdaptedWhole:
    why = ""
    for first, pad in product((False, True), range(FIXED_PADS)):
        call = _called(thing, name, reading, sequence_first=first)
        roles, failure = _roles(thing, call, pad)
        why = why or failure
        parts = _parts(roles)
        if not parts:
            continue
        wanted = {one: code for one, code in parts.items() if reading.component in ("", one)}
        limits = Limits() if call.pads else Limits(pad=pad)
        assumed = () if call.pads else (FIXED_PAD.format(pad),)
        if wanted and not (assumed and reading.strict):
            made = _Several(name, origin(thing, home, name), call, wanted, limits)
            return _backend(thing, made, assumed)
    raise Unclear(
        f"{name} makes the masks of a source and a target, and not all that it returns was "
        f"recognised ({why or 'no mask of padding and no causal one'}): either a mask is wrong, or "
        f"it has another form. Write a function that returns one of them, and name it with --as "
        f"padding_mask, causal_mask or target_mask."
    )


def _backend(thing: Any, made: _Several, assumed: tuple[str, ...]) -> AdaptedWhole:
    space: dict[str, Any] = {
        "torch": torch,
        "Limits": Limits,
        "Recipe": Recipe,
        "TorchBackend": TorchBackend,
        made.found.expression: thing,
    }
    exec(made.body(), space)
    backend: TorchBackend = space["backend"]
    called = ", ".join(
        [f"source={made.call.source}", f"target={made.call.target}", *made.call.pads]
    )
    head = f"{made.name} is judged as {' and '.join(made.parts)}"
    return AdaptedWhole(
        name=backend.name,
        title=backend.title,
        recipes=backend.recipes,
        limits=backend.limits,
        understood=(head, *assumed, made.call.code("source", "target")),
        assumed=assumed,
        summary=f"{made.name} called ({called}); {' and '.join(made.parts)}",
        adapter=made,
    )


def _sides(signature: inspect.Signature) -> tuple[str | None, str | None]:
    """Return the arguments of the source and of the target, None for one that is not there."""
    names = {squashed(one): one for one in signature.parameters}
    found = [
        next(
            (names[one] for one in ROLES[side] if one in names and one not in ("x", "input")), None
        )
        for side in ("source", "target")
    ]
    return found[0], found[1]


_PAD_ID = re.compile(r"pad(ding)?(token)?(id|idx|index)")


def _called(thing: Any, name: str, reading: Reading, *, sequence_first: bool) -> _Call:
    signature = inspect.signature(thing)
    source, target = _sides(signature)
    pads, fixed, unknown = [], dict(reading.given), []
    for own, one in signature.parameters.items():
        if own in (source, target) or own in fixed:
            continue
        if squashed(own) in BATCH_PADS:
            pads.append(own)
        elif one.default is one.empty and _PAD_ID.search(squashed(own)):
            pads.append(own)  # one of a side, or of a language
        elif one.default is one.empty and squashed(own) in OFF:
            fixed[own] = OFF[squashed(own)]
        elif one.default is one.empty:
            unknown.append(own)
    if unknown:
        raise Unclear(
            f"{name} makes the masks of a source and a target, and nothing says what to give for "
            f"{' and '.join(unknown)}. Add --give {unknown[0]}=VALUE."
        )
    return _Call("make", str(source), str(target), pads, fixed, sequence_first)


def _roles(thing: Any, call: _Call, pad: int) -> tuple[dict[str, list[str]], str]:
    """Return the expressions of the masks by what they hide, or why there are none.

    Each of the results has to be a mask of the spec, and all but added ones of one convention.
    """
    source = torch.tensor([[11, 12, 13, 14, 15], [12, pad, 14, pad, 11], [13, 11, pad, 12, pad]])
    target = torch.tensor([[15, 14, 13, 12], [11, pad, 13, pad], [14, 12, pad, 11]])
    try:
        given = {"make": thing, "source": source, "target": target, "pad": pad}
        result = eval(call.code("source", "target"), {"torch": torch}, given)
    except Exception as failure:  # code that a user wrote may raise anything
        return {}, summary(failure, 120)
    if not isinstance(result, tuple | list | dict):
        return {}, f"it returns a {type(result).__name__}"
    items = list(result.items() if isinstance(result, dict) else enumerate(result))
    known = list(_known(source != pad, target != pad))
    why = ""
    for meaning in ("keep", "blocks"):
        roles: dict[str, list[str]] = {}
        for key, part in items:
            role, code = _role(part, meaning, known)
            if not role:
                why = why or f"its result {key!r} is no mask of the spec"
                break
            roles.setdefault(role, []).append(code.format(f"result[{key!r}]"))
        else:
            return roles, ""
    return {}, why


def _role(part: Any, meaning: str, known: Iterable[tuple[str, Tensor, str]]) -> tuple[str, str]:
    """Return what `part` hides, and the expression of the contract's mask; "" for no mask."""
    if not isinstance(part, Tensor):
        return "", ""
    added = part.is_floating_point() and bool(part.isinf().any() or (part == 0).all())
    meaning = "additive" if added else meaning
    keep = part != 0 if meaning == "keep" else part == 0
    if bool(keep.all()) and keep.ndim == 2 and keep.shape[0] == keep.shape[1]:
        return "open", "{}"
    for role, expected, code in known:
        if keep.shape == expected.shape and torch.equal(keep, expected):
            return role, f"({CODE[meaning]}){code}"
    return "", ""


def _known(source: Tensor, target: Tensor) -> Iterator[tuple[str, Tensor, str]]:
    """Yield the masks that code returns: what each hides, and what gives it all four axes."""
    causal = torch.ones(_TARGET, _TARGET, dtype=torch.bool).tril()
    for side, keep, rows in (
        ("source", source, (_SOURCE, _TARGET)),
        ("target padding", target, (_TARGET,)),
    ):
        yield side, keep, "[:, None, None]"
        yield side, keep[:, None], "[:, None]"
        yield side, keep[:, None, None], ""
        for count in rows:
            yield side, keep[:, None].expand(-1, count, -1), "[:, None, :1]"
            yield side, keep[:, None, None].expand(-1, 1, count, -1), "[:, :, :1]"
    for side, both in (("causal", causal[None]), ("target", target[:, None] & causal)):
        yield side, both, "[:, None]"
        yield side, both[:, None], ""
    yield "causal", causal, "[None, None]"


def _parts(roles: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the expressions by component, {} where the source's padding or the order lacks."""
    found = {"padding_mask": roles.get("source", [])}
    found |= {"target_mask": roles.get("target", []), "causal_mask": roles.get("causal", [])}
    if not found["padding_mask"] or not (found["target_mask"] or found["causal_mask"]):
        return {}
    return {one: " & ".join(codes) for one, codes in found.items() if codes}


_IMPORTS = (
    "import torch",
    "",
    "from attentest_spec import Limits",
    "from attentest_spec.torch import Recipe, TorchBackend",
)
