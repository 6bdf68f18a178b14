"""Batches that were not written for the contract: a class or function of source and target."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attentest.harness.reproduction import Action, Build, Call
from attentest.targets.adapt import arguments
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.makers.maker import with_axes
from attentest.targets.adapt.names import BATCH_PADS, BATCH_RESULTS
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.adapt.writing.values import Writer, tensor
from attentest.targets.models.written import definition, head_line
from attentest_spec import Limits, Sizes
from attentest_spec.batch import batch
from attentest_spec.setting import Setting, Tokens
from attentest_spec.torch import Recipe, TorchBackend, to_array, to_tensor

COMPONENT = "batch"
MEANINGS: Mapping[str, tuple[str, Callable[[Tensor], Tensor]]] = {
    "keep": ("{} != 0", lambda mask: mask != 0),
    "blocks": ("{} == 0", lambda mask: mask == 0),
    "additive": ("{} == 0", lambda mask: mask == 0),
}
"""The expression of a mask of each meaning in the contract's, and the function."""

PAD = 3


def _pair(pad: int) -> tuple[Tokens, Tokens]:
    """Return a source (2, 3) and a target (2, 5) with padding at the end and inside."""
    source = np.array([[5, pad, 6], [6, pad, pad]])
    return source, np.array([[2, 5, pad, 6, 7], [2, 5, 6, pad, pad]])


@dataclass(frozen=True)
class BatchCall:
    """The conventions of one batch.

    `source`, `target` and `pads` are its arguments (`pads` with the size that each gets), `places`
    the names of its results in the order of the contract, `keys` says that they are those of a
    mapping. `meaning` is that of its masks.
    """

    source: str
    target: str
    pads: Mapping[str, str]
    places: Sequence[str]
    keys: bool = False
    meaning: str = "keep"

    def __call__(self, built: tuple[Any, Sizes], source: Tensor, target: Tensor) -> Any:
        """Return the results in the order of the contract."""
        thing, sizes = built
        given = {own: getattr(sizes, size) for own, size in self.pads.items()}
        made = thing(**{self.source: source, self.target: target}, **given)
        found = [made[one] if self.keys else getattr(made, one) for one in self.places]
        masks = [with_axes(MEANINGS[self.meaning][1](one), COMPONENT) for one in found[2:4]]
        return *found[:2], *masks, torch.as_tensor(found[4])

    def code(self, function: str, pads: Mapping[str, Any]) -> Iterator[str]:
        """Yield the lines that make the batch and return its results, called `found`."""
        given = {self.source: "source", self.target: "target", **pads}
        named = ", ".join(f"{own}={one}" for own, one in given.items())
        yield f"made = {function}({named})"
        listed = [f"made[{one!r}]" if self.keys else f"made.{one}" for one in self.places]
        yield f"found = ({', '.join(listed)})"


@dataclass(frozen=True, kw_only=True)
class AdaptedBatch(TorchBackend):
    """A backend made of a batch that was not written for the contract."""

    understood: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    summary: str = ""
    code: Code
    call: BatchCall

    def reproduction_script(self, actions: Sequence[Action]) -> str:
        """Return code that repeats `actions` on the user's own code, with nothing between."""
        writer, sizes, body = Writer(), Sizes(), list[str]()
        writer.need(*self.code.origin.imports)
        for action in actions:
            if isinstance(action, Build):
                sizes = action.sizes
            if isinstance(action, Call):
                pairs = zip(("source", "target"), action.inputs, strict=True)
                body += [f"{name} = {tensor(to_tensor(np.asarray(one)))}" for name, one in pairs]
                pads = {own: getattr(sizes, size) for own, size in self.call.pads.items()}
                body += [*self.call.code(self.code.origin.expression, pads), "print(found)"]
        return "\n".join([*writer.imports, "", *body])

    def written(self) -> str:
        """Return the adapter as the text of a Python file."""
        pads = {own: f"sizes.{size}" for own, size in self.call.pads.items()}
        made, found = self.call.code(self.code.origin.expression, pads)
        mask = MEANINGS[self.call.meaning][0].format("mask")
        lines = [
            head_line(self.code.name),
            "",
            "import torch",
            *self.code.origin.imports,
            "from attentest_spec import Limits",
            "from attentest_spec.torch import Recipe, TorchBackend",
            "",
            *(f"# {line}" for one in self.understood for line in wrap(one, 86)),
            "",
            "",
            inspect.getsource(with_axes).replace("Tensor", "torch.Tensor").strip(),
            "",
            "",
            "def call(sizes, source, target):",
            f'    """Return what {self.code.name} makes of the inputs of the contract."""',
            f"    {made}",
            f"    {found}",
            f'    masks = [with_axes({mask}, "batch") for mask in found[2:4]]',
            "    return *found[:2], *masks, torch.as_tensor(found[4])",
            "",
            "",
            definition(self.code.name, COMPONENT, "lambda sizes: sizes, call", {}, self.limits),
        ]
        return "\n".join(lines)


def adapt_batch(code: Code, reading: Reading) -> AdaptedBatch:
    """Return a batch as a backend; Unclear, with what to add, where a result has no known name."""
    pads = _pads(code, reading)
    rest = [one for own, one in code.signature.parameters.items() if own not in pads]
    words = {role: own for role, own in reading.arguments.items() if own not in pads}
    signature = code.signature.replace(parameters=rest)
    carried = arguments.read(code.name, COMPONENT, signature, replace(reading, arguments=words))
    places, keys = _places(code, carried.roles, pads)
    call = BatchCall(carried.roles["source"], carried.roles["target"], pads, places, keys)
    limits = Limits(
        dropout=False,
        own_pads={"source_pad", "target_pad"} <= set(pads.values()),
        pad=None if pads else _fixed_pad(code, call),
    )
    call, how = _with_meaning(code, call, reading, PAD if limits.pad is None else limits.pad)
    named = ", ".join(f"{role}={own}" for role, own in carried.roles.items())
    said = (
        f"{code.name} is judged as {COMPONENT}",
        f"arguments: {', '.join([named, *(f'{own}={size}' for own, size in pads.items())])}",
        f"results: {', '.join(places)} (by their names)",
        how,
    )
    guesses = (f"assumed that the pad id is always {limits.pad}",) * (limits.pad is not None)
    return AdaptedBatch(
        name=code.name,
        title=f"{code.name}, read as {COMPONENT}",
        recipes={COMPONENT: Recipe(lambda sizes: (code.thing, sizes), call)},
        limits=limits,
        code=code,
        call=call,
        understood=(said[0], *guesses, *said[1:]),
        assumed=guesses,
        summary=f"{code.name} called ({named}); {', '.join(places)}",
    )


def _pads(code: Code, reading: Reading) -> dict[str, str]:
    """Return the arguments that get a pad id; where there is one, it is that of the target."""
    asked = {own: size for size, own in reading.arguments.items()}
    found = {}
    for own in code.signature.parameters:
        size = asked.get(own, BATCH_PADS.get(squashed(own), ""))
        if size in BATCH_PADS.values() and own not in reading.given:
            found[own] = size
    return found


def _made(code: Code, roles: Mapping[str, str], pads: Mapping[str, str], pad: int) -> Any:
    source, target = map(torch.from_numpy, _pair(pad))
    given = {roles["source"]: source, roles["target"]: target}
    with undisturbed():
        return code.thing(**given, **dict.fromkeys(pads, pad))


def _places(
    code: Code, roles: Mapping[str, str], pads: Mapping[str, str]
) -> tuple[list[str], bool]:
    """Return the names of the results, and whether they are keys; Unclear where one is missing."""
    try:
        made = _made(code, roles, pads, PAD)
    except Exception as failure:  # code that a user wrote may raise anything
        raise Unclear(
            f"{code.name} could not be called with a source (2, 3) and a target (2, 5): "
            f"{type(failure).__name__}: {failure}. If an argument was taken for another, say which "
            f"is which with --argument ROLE=NAME."
        ) from failure
    keys = isinstance(made, Mapping)
    own = {squashed(one): one for one in (made if keys else _attributes(made))}
    found = [
        next((own[one] for one in names if one in own), "") for names in BATCH_RESULTS.values()
    ]
    missing = [role for role, one in zip(BATCH_RESULTS, found, strict=True) if not one]
    if missing:
        raise Unclear(
            f"{code.name} has no result with a known name for the {', the '.join(missing)}; it has "
            f"{', '.join(own.values()) or 'none'}. Write in a file of your own: `from "
            f"attentest_spec.torch import of_function` and `backend = of_function(lambda source, "
            f'target: (input, target, source_mask, target_mask, number), "batch")`.'
        )
    return found, keys


def _attributes(made: Any) -> list[str]:
    fields = getattr(made, "_fields", ())  # of a named tuple
    return [*fields, *getattr(made, "__dict__", {})]


def _answers(code: Code, call: BatchCall, pad: int) -> tuple[Any, ...]:
    sizes = Sizes(source_pad=pad, target_pad=pad)
    found = call((code.thing, sizes), *map(torch.from_numpy, _pair(pad)))
    return tuple(to_array(one) for one in found)


def _expected(pad: int) -> tuple[Any, ...]:
    return batch(Setting(Sizes(source_pad=pad, target_pad=pad)), *_pair(pad))


def _fixed_pad(code: Code, call: BatchCall) -> int:
    """Return the pad id of code that takes none: the one that its number leaves out, or 0."""
    counting = (pad for pad in (0, 1) if _answers(code, call, pad)[4] == _expected(pad)[4])
    return next(counting, 0)


def _with_meaning(code: Code, call: BatchCall, reading: Reading, pad: int) -> tuple[BatchCall, str]:
    """Return the call with the meaning of its masks, and how it was found; Unclear for none."""
    if reading.mask:
        said = reading.meaning_of("")
        return replace(call, meaning=said), f"masks: {said} (as you say)"
    expected = _expected(pad)
    for meaning in MEANINGS:
        tried = replace(call, meaning=meaning)
        found = _answers(code, tried, pad)
        if any(np.array_equal(found[number], expected[number]) for number in (2, 3)):
            return tried, f"masks: {meaning} (as a probing call shows)"
    raise Unclear(
        f"Under no meaning is a mask of {code.name} that of the spec. Say what True or 1 means: "
        f"--set mask=keep or --set mask=blocks (in Python: mask=..), and it is judged by that."
    )
