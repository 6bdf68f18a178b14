"""Calls of decoder-only models that take one token at a time: a text is all of its steps."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from attentest.results.text import summary
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Unclear
from attentest.targets.language_models.argument_names import STARTS
from attentest.targets.language_models.calling import (
    Arguments,
    Call,
    gives_logits,
    inputs_of,
    probe_tokens,
)
from attentest.targets.language_models.construction.building import PROBE
from attentest.targets.language_models.surrounded.modules import signature_of
from attentest.targets.models.results import parts_of
from attentest_spec.choices import Value

ONE_BY_ONE = (
    "assumed that its caller gives it one token at a time, with the number of tokens before as {},"
    " and no more of them than it is built for: it refuses a whole text, and every text is judged "
    "by its steps, without gradients"
)

MOST = "most_tokens"
"""The attribute of a model that holds the greatest length that it is built for."""


@dataclass(frozen=True, kw_only=True)
class OneByOne(Call):
    """A call for each token of a text; `counted` is the argument with the number of those before.

    The model keeps what it needs of them itself.
    """

    counted: str

    def source(self) -> str:
        """Return the source of the function `call`."""
        fixed = {own: value for own, value in self.fixed.items() if own != self.counted}
        held = [f'"{self.tokens}": tokens[:, before : before + 1]', f'"{self.counted}": before']
        held += [f'"{own}": {value!r}' for own, value in fixed.items()]
        rows = [
            "def call(model, tokens, mask=None, positions=None):",
            '    """Return the logits (B, T, V) for tokens (B, T), which are given one by one."""',
            *self._refusals(),
            f"    if tokens.shape[1] > getattr(model, {MOST!r}, tokens.shape[1]):",
            '        raise Unsupported("it is built for fewer tokens")',
            "    steps = []",
            "    with torch.no_grad():",
            "        for before in range(tokens.shape[1]):",
            f"            output = model(**{{{', '.join(held)}}})",
            *(f"        {row}" for row in self._output() if "return" not in row),
            "            steps.append(output.reshape(len(tokens), 1, -1))",
            "    return torch.cat(steps, dim=1)",
        ]
        return "\n".join(rows) + "\n"

    @property
    def words(self) -> str:
        """The arguments in one phrase."""
        rest = {own: value for own, value in self.fixed.items() if own != self.counted}
        fixed = "".join(f", {own}={value!r}" for own, value in rest.items())
        return f"{self.tokens} one at a time, tokens before={self.counted}{fixed}"


def one_by_one(model: nn.Module, found: Arguments) -> OneByOne | None:
    """Return the call for each token that gives logits for all, None where there is none.

    Later logits depend on earlier tokens then, and on nothing of another sequence.
    """
    for counted in [own for own in signature_of(model).parameters if squashed(own) in STARTS]:
        for call in _with_logits(model, found.plain, counted):
            if gives_logits(model, call):
                return call
    return None


def words_on_step(model: nn.Module, found: Arguments) -> str:
    """Return the sentence on a model that is called step by step and raises in the first one.

    It is "" where the first step, of one token, gives a result.
    """
    counted = next((own for own in signature_of(model).parameters if squashed(own) in STARTS), "")
    if not counted:
        return ""
    plain = replace(found.plain, fixed={**found.plain.fixed, counted: 0})
    try:
        with undisturbed():
            model(**inputs_of(plain, probe_tokens(steps=1)))
    except Exception as failure:  # code that a user wrote may raise anything
        return f" One token alone, with {counted}=0, raised {summary(failure, 160).rstrip('.')}."
    return ""


def _with_logits(model: nn.Module, plain: Call, counted: str) -> Iterator[OneByOne]:
    """Yield the calls by the place of the logits in what the first step returns."""
    tokens = probe_tokens(steps=1)
    held = {one: getattr(plain, one) for one in ("tokens", "fixed", "holders")}
    try:
        with undisturbed():
            result: Any = model(**inputs_of(plain, tokens))
    except Exception:  # code that a user wrote may raise anything
        return
    size = torch.Size((len(tokens), PROBE.target_vocabulary)).numel()
    for key, part, attribute in parts_of(result):
        if part.numel() == size and part.shape[-1] == PROBE.target_vocabulary:
            yield OneByOne(**held, part=key, attribute=attribute, counted=counted)


def demand_positions(name: str, call: Call, choices: Mapping[str, Value]) -> None:
    """Raise Unclear where steps of single tokens have the numbers of a model without positions.

    Positions that begin anew in each step turn nothing.
    """
    placed = [one for one in _POSITIONS if choices.get(one, "none") != "none"]
    if isinstance(call, OneByOne) and not placed:
        raise Unclear(
            f"{name} takes one token at a time, and its steps have the numbers of a model without "
            f"any positions, although {call.counted} says how many tokens come before. Either its "
            f"positions begin anew in each step, which is a mistake, or it has none: --anyway (in "
            f"Python: anyway=True) judges it without."
        )


_POSITIONS = ("positional_encoding", "attention_rotary", "relative_bias")
"""The choices by which a model tells one position from another."""


def noting_most(build: str) -> str:
    """Return the source of a function `build` that notes the greatest length of what it builds."""
    head, expression = build.rsplit("    return ", 1)
    return f"{head}    model = {expression}    model.{MOST} = sizes.max_length\n    return model\n"


def by_steps(found: Arguments) -> Arguments:
    """Return the arguments of which steps of single tokens take no more than they need."""
    return replace(found, labels="", masks=(), positions=())
