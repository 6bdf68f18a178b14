"""From a function that decodes greedily to a backend: how it is called is tried out, and said."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad as padded

from attentest.harness.scripted import DECODING
from attentest.results.text import summary as in_short
from attentest.targets.adapt.components import component_guessed
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.origin import origin
from attentest.targets.searches import beams, filters, samplers
from attentest.targets.searches.arguments import roles_of
from attentest.targets.searches.backend import AdaptedSearch, options_of
from attentest.targets.searches.calling import SearchCall
from attentest.targets.searches.classes import as_function
from attentest.targets.searches.stand_in import StandIn
from attentest_spec import Choices, Limits, Setting, Sizes
from attentest_spec.decoding import greedy_decoding
from attentest_spec.generator import log_softmax
from attentest_spec.setting import Array, Floats
from attentest_spec.torch import Recipe, Script, to_tensor

COMPONENT = "greedy_decoding"
SIZES = Sizes(
    target_vocabulary=11, source_vocabulary=11, source_pad=4, target_pad=4, start=7, end=9
)
"""The sizes of probing calls: no id is one that code has by habit."""

_NEW = 5


@dataclass(frozen=True)
class Call(SearchCall):
    """The call of greedy decoding.

    `is_cut` says that its caller cuts after the end token, `drops_end` that what it returns of one
    sequence, which is shorter where it ended, does not contain that token.
    """

    is_cut: bool = False
    drops_end: bool = False

    def __call__(self, model: StandIn, scores: Tensor, begin: Tensor, length: int) -> Tensor:
        """Return the tokens, of the shape (B, M), for the contract's inputs."""
        script = model.script
        rows = [
            self._tokens(self.raw(model, own, given, length), given, length, script)
            for own, given in self.batches(model, scores, begin)
        ]
        longest = max(length, *(row.shape[1] for row in rows))
        filler = script.end if self.fills_end else script.pad
        found = torch.cat([padded(row, (0, longest - row.shape[1]), value=filler) for row in rows])
        return cut(found, begin.shape[1], script) if self.is_cut else found

    def _tokens(self, result: Any, begin: Tensor, length: int, script: Script) -> Tensor:
        """Return the result as tokens, of the shape (B, M), with the given ones in front."""
        found = result[0] if isinstance(result, tuple) and len(result) else result
        if isinstance(found, Tensor) and self.drops_end and found.ndim in (1, 2):
            found = found.flatten().tolist()
        if isinstance(found, list):
            rows: list[Any] = [one.tolist() if isinstance(one, Tensor) else one for one in found]
            nested = any(isinstance(one, list) for one in rows)
            if nested or self.drops_end:
                longest = length - (0 if self.keeps_begin else begin.shape[1])
                rows = rectangular(rows if nested else [rows], longest, script)
            found = torch.tensor(rows)
        if not isinstance(found, Tensor) or found.ndim not in (1, 2):
            raise ValueError(f"it returned a {type(found).__name__}, and no tokens")
        if found.ndim == 1:
            found = found[None]
        elif self.sequence_first and found.shape[0] != len(begin):
            found = found.mT
        return found if self.keeps_begin else torch.cat([begin, found], dim=1)


def rectangular(rows: list[list[int]], length: int, script: Script) -> list[list[int]]:
    """Return lists of tokens with the end token, where they are cut before it, and padding."""
    ended = [row if script.end in row or len(row) >= length else [*row, script.end] for row in rows]
    longest = max(map(len, ended))
    return [row + [script.pad] * (longest - len(row)) for row in ended]


def cut(tokens: Tensor, begin: int, script: Script) -> Tensor:
    """Return tokens (B, M) with padding after the first end token from the column `begin` on."""
    ends = (tokens == script.end) & (torch.arange(tokens.shape[1]) >= begin)
    after = ends.cumsum(dim=1) - ends.long() > 0
    return tokens.masked_fill(after, script.pad)


def adapt_search(
    function: Callable[..., Any],
    named: str,
    name: str,
    home: ModuleType | None,
    reading: Reading,
) -> AdaptedSearch:
    """Return `function` as a backend of what it decodes by; Unclear where it cannot be called."""
    if named == samplers.COMPONENT and filters.takes_logits(function):
        return samplers.adapt_sampler(function, name, home, reading)
    if named == samplers.COMPONENT:
        raise Unclear(
            f"{name} is no function of logits. Name a function that filters them or draws a token, "
            f"or write a backend with a recipe, as docs/how-to/add-an-implementation.md shows."
        )
    thing, function = function, as_function(function, name)
    if named == beams.COMPONENT:
        return beams.adapt_beams(function, thing, name, home, reading)
    roles = roles_of(function, name, reading)
    with undisturbed():
        call, said = _tried(Call(function, roles), name, reading)
        try:
            if is_without_end(call):
                call, said = replace(call, drops_end=True), [*said, _WITHOUT_END]
            declared, filler, facts = _declared(call, name)
            if is_text(call) and not reading.strict:
                call, facts = replace(call, is_cut=True), [*facts, _TEXT]
        except (RuntimeError, TypeError, ValueError, IndexError, LookupError) as failure:
            raise Unclear(
                f"{name} failed in a probing call in which one of two sequences ends: "
                f"{in_short(failure)}. Write in a file of your own a recipe with "
                f"attentest_spec.torch.Script."
            ) from failure
    call = replace(call, fills_end=declared.get("after_end") == "end")
    assumed = tuple(one for one in [*said, *facts] if one.startswith("assumed"))
    return AdaptedSearch(
        name=name,
        title=f"{name}, read as {COMPONENT}",
        recipes={COMPONENT: Recipe(build=call.stand_in, call=_Calling(call))},
        choices={**declared, **reading.choices},
        limits=Limits(pad=filler),
        understood=(f"{name} is judged as {COMPONENT}", roles.words, *said, *facts),
        assumed=assumed,
        summary=f"{name} {roles.words}",
        place=origin(thing, home, name),
        options=options_of(COMPONENT, roles.arguments, reading),
    )


@dataclass(frozen=True)
class _Calling:
    """The call of a recipe."""

    call: Call

    def __call__(self, model: StandIn, scores: Tensor, begin: Tensor, length: int) -> Tensor:
        return self.call(model, scores, begin, length)


# Trying out


def _scores(ends: Sequence[int] = (), seed: int = 0) -> Floats:
    """Return log-probabilities of two sequences that end with their new token number `ends`."""
    rng = np.random.default_rng(seed)
    ids = SIZES.target_vocabulary
    scores = rng.permuted(np.tile(np.arange(ids), (2, _NEW + 2, ids, 1)), axis=-1) * 1.0
    scores[..., [SIZES.end, SIZES.start, SIZES.target_pad, ids - 1 - SIZES.target_pad]] = -20.0
    for sequence, end in enumerate(ends):
        if end:
            scores[sequence, end - 1, :, SIZES.end] = 20.0
    return log_softmax(scores)


_BEGIN = np.full((2, 1), SIZES.start)
_LENGTH = _NEW + 1


def _answer(call: Call, scores: Floats, *, training: bool = False) -> Array:
    model = call.stand_in(SIZES).train(training)
    return call(model, to_tensor(scores), to_tensor(_BEGIN), _LENGTH).numpy()


def _wanted(scores: Floats, **choices: str) -> Array:
    setting = Setting(SIZES, Choices(**choices))  # type: ignore[arg-type]  # names of options
    return greedy_decoding(setting, scores, _BEGIN, _LENGTH)


def _ways(call: Call, reading: Reading) -> Iterator[Call]:
    firsts = {"sequence-first": (True,), "batch-first": (False,)}.get(reading.layout, (False, True))
    for alone in (False, True):
        for first in firsts:
            for counts_new in (False, True):
                for keeps_begin in (True, False):
                    yield replace(
                        call,
                        alone=alone,
                        sequence_first=first,
                        counts_new=counts_new,
                        keeps_begin=keeps_begin,
                    )


def _tried(call: Call, name: str, reading: Reading) -> tuple[Call, list[str]]:
    """Return the way of calling under which the answer is right, or the only one that fits."""
    scores = _scores()
    wanted = _wanted(scores)
    ran: list[Call] = []
    refusals: list[str] = []
    for way in _ways(call, reading):
        try:
            answer = _answer(way, scores)
        except Exception as failure:  # code that a user wrote may raise anything
            refusals.append(in_short(failure))
            continue
        if np.array_equal(answer, wanted):
            return way, _words(way)
        if answer.shape == wanted.shape and _is_plausible(answer):
            ran.append(way)
    kinds = {(one.sequence_first, one.counts_new, one.keeps_begin) for one in ran}
    if len(kinds) == 1:
        return ran[0], [*_words(ran[0]), "assumed that it is called so: its tokens are not right"]
    what = "; ".join(dict.fromkeys(refusals)) or "the tokens have another length"
    if ran:
        raise Unclear(
            f"{name} could be called in several ways, and its tokens are right in none of them. "
            f"Say which axis comes first: --set layout=batch-first or --set layout=sequence-first."
        )
    raise Unclear(
        f"{name} could not be called as greedy_decoding with a scripted model, which has encode, "
        f"decode, a call and a generator. What was tried: {what}. Say which argument is which with "
        f"--argument ROLE=NAME, or write in a file of your own a recipe with "
        f"attentest_spec.torch.Script."
    )


def _is_plausible(answer: Array) -> bool:
    """Say whether wrong tokens have the start token once, and one sequence its whole length."""
    starts = answer == SIZES.start
    whole = bool((answer[:, -1] != SIZES.target_pad).any())
    return whole and bool(starts[:, 0].all()) and not starts[:, 1].any()


def _words(call: Call) -> list[str]:
    first = "sequence first" if call.sequence_first else "batch first"
    one = "one sequence at a time" if call.alone else "a whole batch"
    said = [f"it decodes {one}, {first} (as probing calls show)"]
    if call.counts_new:
        said.append("assumed that its length counts new tokens alone")
    if not call.keeps_begin:
        said.append("its result does not contain the given tokens")
    return said


_TEXT = (
    "assumed that its caller cuts a sequence after its end token: what is written there, while "
    "others go on, is not judged, and --strict reports it"
)


_WITHOUT_END = "its result does not contain the end token: a result that is shorter ended there"


def is_without_end(call: Call) -> bool:
    """Say whether one sequence is returned without its end token, and all else is correct."""
    if not call.alone or not call.roles.has("end"):
        return False
    scores = _scores((1, 3))
    answer, wanted = _answer(call, scores), _wanted(scores)
    return not np.array_equal(answer, wanted) and np.array_equal(
        _answer(replace(call, drops_end=True), scores), wanted
    )


def is_text(call: Call) -> bool:
    """Say whether sequences that ended go on as text while others do, and all else is correct.

    Code that gets a pad id is meant to write that after the end.
    """
    if call.alone or call.roles.has("pad") or not call.roles.has("end"):
        return False
    scores = _scores((1, 0))
    answer, wanted = _answer(call, scores), _wanted(scores)
    return (
        not np.array_equal(answer, wanted)
        and np.array_equal(_answer(replace(call, is_cut=True), scores), wanted)
        and len(set(answer[0, 2:].tolist())) > 1
    )


def _declared(call: Call, name: str) -> tuple[dict[str, str], int | None, list[str]]:
    """Return the choices that calls show, the id it fills up with where fixed, and words."""
    found = {"decoding_stop": "end-token" if call.roles.has("end") else "length"}
    said = []
    if found["decoding_stop"] == "length":
        _never_stops(call, name)
        said.append("no argument is an end token: it goes on to its length")
    trained, plain = (_answer(call, _scores(), training=mode) for mode in (True, False))
    found["decoding_mode"] = "evaluation" if (trained == plain).all() else "as-given"
    said.append(f"mode: {found['decoding_mode']} (as a call in training mode shows)")
    filler = None
    if found["decoding_stop"] == "end-token" and not call.alone:
        after = {int(one) for one in _answer(call, _scores((1, 0)))[0, 2:]}
        if after == {SIZES.end}:
            found["after_end"] = "end"
        elif len(after) == 1 and not call.roles.has("pad") and after != {SIZES.target_pad}:
            [filler] = after
            said.append(f"it fills up with {filler}: that is taken for the pad id")
    return found, filler, said


def _never_stops(call: Call, name: str) -> None:
    """Raise Unclear where some id ends a sequence though no argument names it."""
    for token in range(SIZES.target_vocabulary):
        if token in (SIZES.target_pad, SIZES.start):
            continue
        scores = _scores()
        scores[:, 1, :, token] = 50.0
        wanted = _wanted(scores, decoding_stop="length")
        answer = _answer(call, scores)
        short = answer[(answer != wanted).any(axis=1)]
        if len(short) and (short[:, -1] == SIZES.target_pad).all():
            token = int(short[0][short[0] != SIZES.target_pad][-1])
            raise Unclear(
                f"{name} stops at the token {token}, and no argument names it. Say which argument "
                f"is the end token with --argument end=NAME, or give the function one."
            )


def is_search(component: str) -> bool:
    """Say whether the component is one that decodes."""
    return component in DECODING


def guessed(thing: Any, name: str) -> str:
    """Return the component that some words of `name` are, or the filter that it is called by."""
    return component_guessed(name) or samplers.COMPONENT * filters.filter_named(thing, name)
