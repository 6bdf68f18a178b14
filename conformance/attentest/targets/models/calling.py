"""The call of a whole model as the source of a Python function, and the function itself."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from attentest.targets.models.arguments import Arguments, Positions
from attentest.targets.models.forms import ADDITIVE, LENGTHS, Form

FILLED = (
    "assumed that sequences of the greatest length alone are meant, as the model takes no others: "
    "shorter ones are filled with padding at their ends"
)

EQUAL = (
    "assumed that source and target of one length alone are meant, as the model takes no others: "
    "the shorter one is filled with padding at its end. A call whose lengths differ raises, which "
    "is a mistake if such are meant"
)


_LENGTH = "{}_keep.sum(1)"
"""The number of tokens in each row of an input."""


@dataclass(frozen=True)
class Conventions:
    """The conventions of a model besides the names of its arguments.

    `masks` maps mask arguments to their forms. `sequence_first` says that tokens are (L, B),
    `drops_last` that the last target token is dropped inside, `flat` that the output is (B * T,
    V), `cut` that columns of padding alone are cut off, as lengths say, `filled` that sequences
    are filled with padding up to the greatest length, which the model takes alone, `equal` that the
    shorter side is filled up to the length of the other, `labelled` that labels are given too,
    without which no logits of all steps are returned, `turned` that the output has the other order
    of samples and steps than the tokens, `classes_second` that it is
    (B, V, T), as a cross-entropy takes it, and `part` is the place of the output in a tuple or
    mapping, and `generator` the attribute that maps the states to the vocabulary where the call
    does not; `tied` is the path of the target's table, which does where nothing else would.
    """

    masks: Mapping[str, Form] = field(default_factory=dict)
    sequence_first: bool = False
    drops_last: bool = False
    flat: bool = False
    cut: bool = False
    filled: bool = False
    equal: bool = False
    labelled: bool = False
    turned: bool = False
    classes_second: bool = False
    part: int | str | None = None
    attribute: bool = False
    generator: str = ""
    tied: str = ""

    def but(self, **changes: Any) -> "Conventions":
        """Return a copy with some conventions changed."""
        return replace(self, **changes)

    @property
    def is_filled(self) -> bool:
        """Whether sequences are filled with padding before they are given."""
        return self.filled or self.equal

    @property
    def axes(self) -> str:
        """The axes of the output, as the model returns it."""
        if self.classes_second:
            return "(B, V, T)"
        return "(B, T, V)" if self.turned == self.sequence_first else "(T, B, V)"

    @property
    def words(self) -> Iterator[str]:
        """The conventions, a sentence each."""
        yield "tokens are (L, B), sequence first" if self.sequence_first else "tokens are (B, L)"
        if self.turned or self.classes_second:
            yield f"the output is {self.axes}"
        if self.drops_last:
            yield "the last target token is dropped inside: one is added behind those given"
        if self.generator:
            yield f"the call returns states: {self.generator} maps them to the vocabulary"
        if self.tied:
            yield (
                f"the call returns states, and no generator is in it: the table of the target "
                f"({self.tied}) is used for one, and nothing is said of a generator"
            )
        if self.cut:
            yield "columns that hold padding alone are cut off: the longest length is that of all"
        if self.filled:
            yield FILLED
        if self.equal:
            yield EQUAL
        if self.labelled:
            yield "the target is given as labels too: logits of all steps are returned then alone"
        if self.flat:
            yield "the output has one row for every token of the batch"


@dataclass(frozen=True)
class Call:
    """One call, or one method, of a model as source code.

    `method` is "" for the call itself, `takes` are the names of the contract's inputs. `encoding`
    are the arguments of the method `encode` of a model that has no call: `arguments` are then those
    of its `decode`.
    """

    arguments: Arguments
    conventions: Conventions = field(default_factory=Conventions)
    method: str = ""
    takes: tuple[str, ...] = ("source", "target")
    returns_memory: bool = False
    encoding: Arguments | None = None

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.method or "call"

    @property
    def every_argument(self) -> Arguments:
        """The arguments of the call, with those of `encode` where that is called first."""
        own, first = self.arguments, self.encoding
        if first is None:
            return own
        tokens = {"source": first.tokens["source"], "target": own.tokens["target"]}
        required = [*own.required, *first.required]
        return replace(own, tokens=tokens, masks={**first.masks, **own.masks}, required=required)

    @property
    def lengths(self) -> tuple[str, ...]:
        """The inputs whose padding is said by lengths."""
        roles = self.every_argument.masks
        given = [own for own, form in self.conventions.masks.items() if form.meaning == LENGTHS]
        sides = [roles[own].partition(" ")[0] for own in given]
        return tuple(dict.fromkeys([*sides, *self._pairs]))

    @property
    def _pairs(self) -> list[str]:
        """The inputs that come with their lengths in one argument."""
        own = self.arguments
        return [role for role, name in own.tokens.items() if name in own.with_lengths]

    def source(self, *, raw: bool = False) -> str:
        """Return the source of the function; a `raw` one returns what the model returns."""
        lines = [
            *self._imports(),
            *self._inputs(),
            *self._calls(),
            *(["return output"] if raw else self._outputs()),
        ]
        body = "\n".join(f"    {line}" for line in lines)
        about = f'    """Return {self._result()}; masks are made as the model takes them."""'
        return f"def {self.name}(model, {', '.join(self.takes)}):\n{about}\n{body}\n"

    def compiled(self, *, raw: bool = False) -> Callable[..., Any]:
        """Return the function."""
        space: dict[str, Any] = {"torch": torch}
        exec(ADDITIVE + self.source(raw=raw), space)
        made: Callable[..., Any] = space[self.name]
        return made

    def _result(self) -> str:
        return "the memory (B, S, D)" if self.returns_memory else "the output (B, T, V)"

    def _imports(self) -> Iterator[str]:
        if self.arguments.holder == "object":
            yield "from types import SimpleNamespace"

    def _inputs(self) -> Iterator[str]:
        how = self.conventions
        if how.drops_last and "target" in self.takes:
            yield "target = torch.cat([target, target[:, -1:]], 1)  # the last is dropped inside"
        if how.is_filled:
            yield from ["steps = target.shape[1]"] * ("target" in self.takes)
            longest = "model.longest"
            if how.equal:
                longest = "longest"
                yield "longest = max(source.shape[1], target.shape[1])"
            for number, side in enumerate(("source", "target")):
                if side in self.takes:
                    missing = f"max(0, {longest} - {side}.shape[1])"
                    yield (
                        f"{side} = torch.nn.functional.pad({side}, (0, {missing}), "
                        f"value=model.pads[{number}])"
                    )
        codes = " ".join(
            [*(form.code for form in how.masks.values()), *map(_LENGTH.format, self._pairs)]
        )
        for number, side in enumerate(("source", "target")):
            if f"{side}_keep" in codes:
                keep = f"{side}_keep = {side} != model.pads[{number}]"
                yield keep
                if how.cut:
                    yield from [f"steps = {side}.shape[1]"] * (side == "target")
                    yield f"{side} = {side}[:, : {side}_keep.sum(1).max()]"
                    yield keep
        if "causal" in codes:
            yield "length = target.shape[1]"
            yield (
                "causal = torch.ones(length, length, dtype=torch.bool, device=target.device).tril()"
            )
        if "dtype" in codes:
            yield "dtype = next(model.parameters()).dtype"

    def _calls(self) -> Iterator[str]:
        if self.encoding is None:
            function = f"model.{self.method}" if self.method else "model"
            yield f"output = {function}({self._given(self.arguments)})"
            return
        yield f"memory = model.encode({self._given(self.encoding)})"
        yield f"output = model.decode({self._given(self.arguments)})"

    def _given(self, arguments: Arguments) -> str:
        given = dict(self._values(arguments))
        placed = [value for own, value in given.items() if own in arguments.positional]
        rest = [(own, value) for own, value in given.items() if own not in arguments.positional]
        if arguments.packed and arguments.holder == "dictionary":
            held = ", ".join(f"{own!r}: {value}" for own, value in rest)
            return f"{arguments.packed}={{{held}}}"
        named = ", ".join(f"{own}={value}" for own, value in rest)
        if arguments.packed and arguments.holder == "object":
            return f"{arguments.packed}=SimpleNamespace({named})"
        return ", ".join([*placed, *filter(None, [named])])

    def _outputs(self) -> Iterator[str]:
        how = self.conventions
        if how.part is not None:
            yield (
                f"output = output.{how.part}" if how.attribute else f"output = output[{how.part!r}]"
            )
        if how.generator and not self.returns_memory:
            yield f"output = model.{how.generator}(output)"
        if how.tied and not self.returns_memory:
            yield f'output = output @ model.get_parameter("{how.tied}").mT'
        length = "target.shape[1] - 1" if how.drops_last else "target.shape[1]"
        if how.flat and not self.returns_memory:
            lead = f"{length}, len(target)" if how.sequence_first else f"len(target), {length}"
            yield f"output = output.view({lead}, -1)"
        if how.classes_second:
            yield "output = output.transpose(1, 2)"
        elif how.sequence_first != how.turned:
            yield "output = output.transpose(0, 1)"
        if how.is_filled:
            yield "output = output[:, :steps]"
        if how.cut and "target" in self.lengths:
            yield "output = torch.nn.functional.pad(output, (0, 0, 0, steps - output.shape[1]))"
        yield "return output"

    def _values(self, arguments: Arguments) -> Iterator[tuple[str, str]]:
        turn = ".transpose(0, 1)" if self.conventions.sequence_first else ""
        if arguments.holder == "tuple":
            sides = sorted(arguments.tokens, key=lambda role: arguments.tokens[role])
            yield arguments.packed, f"({', '.join(f'{side}{turn}' for side in sides)})"
            return
        for role, own in arguments.tokens.items():
            own_turn = "" if role == "memory" and self.encoding else turn
            pair = f"({role}{own_turn}, {_LENGTH.format(role)})"
            yield own, pair if own in arguments.with_lengths else f"{role}{own_turn}"
        for own in arguments.masks:
            if own in self.conventions.masks:
                yield own, self.conventions.masks[own].code
            elif own in arguments.required:
                yield own, "None"
        if self.conventions.labelled and arguments.labels:
            yield arguments.labels, f"target{turn}.contiguous()"
        for own, value in arguments.fixed.items():
            is_turned = turn and isinstance(value, Positions)
            yield own, f"({value!r}){turn}" if is_turned else repr(value)
