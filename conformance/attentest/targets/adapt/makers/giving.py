"""The arguments of a function that makes masks, as expressions of the inputs of the contract."""

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from attentest.targets.adapt import arguments
from attentest.targets.adapt.arguments import Arguments
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.masks import is_length
from attentest.targets.adapt.names import BATCH_PADS, OFF, ROLES, words
from attentest.targets.adapt.reading import Reading, Unclear
from attentest_spec import Unsupported

_PADS = (*ROLES["pad"], *BATCH_PADS)
_WHOLE = (*ROLES["length"], *words("maxlen maxlength maximumlength total width maxseqlen"))
_SAMPLES = words("batchsize batch bsz bs nbatch batchdim")
"""Names of the number of samples, which no input of the contract is."""

_POSITIONS = ("torch.ones(1, length, dtype=torch.int64)", "torch.zeros(1, length, 4)")
"""Inputs of so many positions in the place of their number: token ids, or their embeddings."""


@dataclass(frozen=True)
class Giving:
    """One way to give a function its arguments.

    `pads` is False where it needs a pad id and takes none, `lengths` says that it takes lengths in
    the place of tokens, and `cut` that its mask is as long as the longest of them. Where no name
    says it, `assumed` does: such a way is taken where it makes exactly the mask of the spec.
    """

    arguments: Arguments
    pads: bool = True
    lengths: bool = False
    cut: bool = False
    assumed: str = ""


def token_lengths(tokens: Tensor, pad: int) -> Tensor:
    """Return how many of the tokens (B, S) are real; Unsupported where padding is before one."""
    real = tokens != pad
    if bool((real[:, 1:] & ~real[:, :-1]).any()):
        raise Unsupported("it takes lengths: padding is at the end")
    return real.sum(-1)


def givings(
    name: str, component: str, signature: inspect.Signature, reading: Reading
) -> Iterator[Giving]:
    """Yield the ways to call the function `name`, the plain one first.

    A device is that of the tokens, a precision that has to be given is single, and the number of
    samples is theirs, 1 where there are no tokens. Raises Unclear where there is none.
    """
    free = {one: squashed(one) for one in signature.parameters if one not in reading.given}
    made = {
        one: "torch.float32"
        for one, word in free.items()
        if word == "dtype" and signature.parameters[one].default is inspect.Parameter.empty
    }
    if component != "causal_mask":
        made |= {one: "tokens.device" for one, word in free.items() if word == "device"}
    samples = "1" if component == "causal_mask" else "tokens.shape[0]"
    required = [one for one in free if signature.parameters[one].default is inspect.Parameter.empty]
    counted = {one: samples for one in required if free[one] in _SAMPLES}
    if len(counted) == 1 and len(signature.parameters) > 1:
        rest = [one for own, one in signature.parameters.items() if own not in counted]
        signature, made = signature.replace(parameters=rest), {**made, **counted}
    for way in _givings(name, component, signature, reading):
        fixed = {own: one for own, one in way.arguments.fixed.items() if own not in made}
        computed = {**way.arguments.computed, **made}
        yield replace(way, arguments=replace(way.arguments, fixed=fixed, computed=computed))


def _givings(
    name: str, component: str, signature: inspect.Signature, reading: Reading
) -> Iterator[Giving]:
    settled = {*reading.arguments, *reading.given} & {*signature.parameters, *reading.arguments}
    others = [] if settled else list(_others(component, signature))
    try:
        yield Giving(arguments.read(name, component, signature, reading))
    except Unclear:
        lengths = [own for own in signature.parameters if is_length(own)]
        if lengths and not others:
            raise Unclear(_OF_LENGTHS.format(name, lengths[0], name)) from None
        if not others:
            raise
    yield from others
    if component == "padding_mask" and not settled:
        yield from _unnamed(signature)


_ASSUMED = "assumed that {} carries {}, as a probing call shows"


def _unnamed(signature: inspect.Signature) -> Iterator[Giving]:
    """Yield the ways that no name says: lengths by any name, and tokens (S, B)."""
    own = [one for one in signature.parameters.values() if one.kind not in _LOOSE]
    fixed = {one.name: OFF[squashed(one.name)] for one in own if _is_off(one.name)}
    free = [one for one in own if one.name not in fixed]
    for one in free:
        rest = [other for other in free if other is not one]
        whole = [other.name for other in rest if squashed(other.name) in _WHOLE]
        if {other.name for other in rest if other.default is other.empty} <= {*whole}:
            made = {one.name: _OF_TOKENS} | dict.fromkeys(whole[:1], "tokens.shape[1]")
            said = _ASSUMED.format(one.name, "lengths")
            given = Arguments({}, fixed=fixed, computed=made)
            yield Giving(given, lengths=True, cut=not whole, assumed=said)
    tokens = [one.name for one in free if one.default is one.empty]
    pads = [one for one in tokens if squashed(one) in _PADS]
    if len(tokens) == 1 + len(pads) <= 2:
        first = next(one for one in tokens if one not in pads)
        roles = {"pad": pads[0]} if pads else {}
        given = Arguments(roles, fixed=fixed, computed={first: "tokens.T"})
        said = _ASSUMED.format(first, "tokens with the sequence first (S, B)")
        yield Giving(given, pads=bool(pads), assumed=said)


_OF_TOKENS = "token_lengths(tokens, pad)"

_OF_LENGTHS = (
    "{} takes {} in the place of tokens, and such a function is read where its one other argument "
    "is the length of the whole, such as max_len. Write in a file of your own: `from "
    "attentest_spec.torch import of_function` and `backend = of_function(lambda tokens, pad: "
    '{}(..), "padding_mask")`.'
)


def _others(component: str, signature: inspect.Signature) -> Iterator[Giving]:
    """Yield the ways to call a function that takes something else than the contract's inputs."""
    own = [one for one in signature.parameters.values() if one.kind not in _LOOSE]
    needed = [one.name for one in own if one.default is one.empty and not _is_off(one.name)]
    fixed = {one.name: OFF[squashed(one.name)] for one in own if _is_off(one.name)}
    if component == "causal_mask":
        yield from _of_positions(needed, fixed)
        return
    pads = [one for one in needed if squashed(one) in _PADS]
    loose = [one for one in signature.parameters.values() if one.kind is one.VAR_POSITIONAL]
    lengths = [one.name for one in (*own, *loose) if is_length(one.name)]
    if len(lengths) == 1 and component == "padding_mask":
        whole = [one.name for one in own if squashed(one.name) in _WHOLE]
        if whole and {*needed} <= {*lengths, *whole}:
            made = {lengths[0]: _OF_TOKENS, whole[0]: "tokens.shape[1]"}
            yield Giving(Arguments({}, fixed=fixed, computed=made), lengths=True)
        if not whole and {*needed} <= {*lengths}:
            made = {lengths[0]: _OF_TOKENS}
            yield Giving(Arguments({}, fixed=fixed, computed=made), lengths=True, cut=True)
        return
    tokens = [one for one in needed if one not in pads]
    if 1 <= len(tokens) <= 2 and len(pads) <= 2:
        roles = {"tokens": tokens[-1], **({"pad": pads[0]} if pads else {})}
        made = dict.fromkeys(tokens[:-1], "tokens") | dict.fromkeys(pads[1:], "pad")
        yield Giving(Arguments(roles, fixed=fixed, computed=made), pads=bool(pads))


_LOOSE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _is_off(own: str) -> bool:
    return squashed(own) in OFF


def _of_positions(needed: Sequence[str], fixed: dict[str, Any]) -> Iterator[Giving]:
    """Yield a causal mask of two lengths, or of tokens or embeddings of so many positions."""
    if len(needed) == 2:
        first, second = needed
        yield Giving(Arguments({"length": first}, fixed=fixed, computed={second: "length"}))
    if 1 <= len(needed) <= 2:
        for one in _POSITIONS:
            yield Giving(Arguments({}, fixed=fixed, computed=dict.fromkeys(needed, one)))
