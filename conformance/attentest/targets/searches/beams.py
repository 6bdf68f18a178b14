"""From a function or class that searches with a beam to a backend; its options are measured."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attentest.results.text import summary as in_short
from attentest.targets.adapt.assumptions.choices import assumed
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.origin import origin
from attentest.targets.searches import beam_choices
from attentest.targets.searches.arguments import roles_of
from attentest.targets.searches.backend import AdaptedSearch, options_of
from attentest.targets.searches.beam_choices import SIZES, Probing
from attentest.targets.searches.calling import SearchCall
from attentest.targets.searches.hypotheses import Hypothesis, hypotheses_of
from attentest.targets.searches.stand_in import StandIn
from attentest.targets.single import SINGLE
from attentest_spec import Limits
from attentest_spec.choices import Value
from attentest_spec.torch import Recipe, Script, to_tensor

COMPONENT = "beam_search"


@dataclass(frozen=True)
class BeamCall(SearchCall):
    """The call of a beam search.

    `best` says that one hypothesis alone is taken of its result, `scored` that its scores are.
    """

    best: bool = False
    scored: bool = True

    def __call__(
        self, model: StandIn, scores: Tensor, begin: Tensor, length: int, beams: int
    ) -> tuple[Tensor, Tensor | None]:
        """Return tokens (B, N, M), and scores (B, N) where it returns them."""
        rows: list[list[Hypothesis]] = []
        for own, given in self.batches(model, scores, begin):
            result = self.raw(model, own, given, length, beams=beams, alpha=model.alpha)
            rows += hypotheses_of(result, alone=self.alone)
        wanted = 1 if self.best else beams
        short = min(len(row) for row in rows)
        if len(rows) != len(begin) or short < wanted:
            raise ValueError(f"it returned {short} hypotheses for {len(rows)} sequences")
        taken = [row[:wanted] for row in rows]
        tokens = [
            [self._filled(one, own, length, model.script) for one, _ in row]
            for row, own in zip(taken, begin, strict=True)
        ]
        return torch.tensor(tokens), self._scores(taken, scores)

    def _filled(self, tokens: list[int], begin: Tensor, length: int, script: Script) -> list[int]:
        """Return tokens of the whole length, with the given ones and an end that was cut off."""
        own = tokens if self.keeps_begin else [*begin.tolist(), *tokens]
        if len(own) < length and script.end not in own[len(begin) :]:
            own = [*own, script.end] if self.roles.has("end") else own
        filler = script.end if self.fills_end else script.pad
        return [*own, *[filler] * (length - len(own))]

    def _scores(self, rows: list[list[Hypothesis]], like: Tensor) -> Tensor | None:
        found = [[score for _, score in row] for row in rows]
        if not self.scored or any(one is None for row in found for one in row):
            return None
        return torch.tensor(found, dtype=torch.float64).to(like.dtype)


def adapt_beams(
    function: Callable[..., Any],
    thing: Any,
    name: str,
    home: ModuleType | None,
    reading: Reading,
) -> AdaptedSearch:
    """Return `function` as a backend of beam search; Unclear where it cannot be called or read."""
    roles = roles_of(function, name, reading, COMPONENT)
    with undisturbed():
        call, said = _tried(BeamCall(function, roles), name, reading)
        found = beam_choices.measured(_probing(call), reading)
        if found is None and not (reading.anyway or beam_choices.DESIGN & set(reading.choices)):
            raise Unclear(
                f"The hypotheses of {name} are those of no listed beam search. Say which one it "
                f"should be with --choice finished_beams=in-beam or set-aside, and --choice "
                f"length_penalty=wu, power or none; then it is judged by that."
            )
        choices: dict[str, Value] = dict(found.choices) if found else {}
        choices |= {**_filling(call), **reading.choices}
        trained, plain = (
            _answer(call, beam_choices.peaked((3, 0)), training=mode) for mode in (True, False)
        )
        choices["decoding_mode"] = "evaluation" if np.array_equal(trained, plain) else "as-given"
    is_score = found is None or found.error < _ROUNDED
    single = found is not None and _EXACT < found.error < _ROUNDED and not reading.strict
    said += [SINGLE] * single + [_OTHER_SCORES] * (not is_score)
    call = replace(call, scored=is_score or reading.strict)
    call = replace(call, fills_end=choices.get("after_end") == "end")
    limits = Limits(
        hypotheses=1 if call.best else None,
        alpha=found.alpha if found else _exponent(call, choices),
        single=(COMPONENT,) * single,
    )
    measured = [f"{axis}: {value} (as probing calls show)" for axis, value in choices.items()]
    if choices.get("output") == "log-probabilities" and "output" not in reading.choices:
        said.append(_AS_GIVEN)
    doubts = (*(one for one in said if one.startswith("assumed")), *assumed(_own(choices), reading))
    return AdaptedSearch(
        name=name,
        title=f"{name}, read as {COMPONENT}",
        recipes={COMPONENT: Recipe(build=call.stand_in, call=_Calling(call))},
        choices=choices,
        limits=limits,
        understood=(f"{name} is judged as {COMPONENT}", roles.words, *said, *measured),
        assumed=doubts,
        summary=f"{name} {roles.words}",
        place=origin(thing, home, name),
        options=options_of(COMPONENT, roles.arguments, reading),
    )


def _own(choices: dict[str, Value]) -> dict[str, Value]:
    return {one: value for one, value in choices.items() if one in ("length_penalty",)}


_AS_GIVEN = (
    "assumed that its model returns log-probabilities, because it adds up what the model returns "
    "as it is: if that is logits, this is a mistake, and --choice output=logits reports it"
)
_EXACT, _ROUNDED = 1e-9, 1e-4
"""The errors of scores up to which they are computed in float64, and in float32."""

_OTHER_SCORES = (
    "assumed that the number beside a hypothesis is not meant as its score, because it is no sum "
    "of log-probabilities over the penalty; it is not judged, and --strict reports it"
)


@dataclass(frozen=True)
class _Calling:
    """The call of a recipe."""

    call: BeamCall

    def __call__(
        self, model: StandIn, scores: Tensor, begin: Tensor, length: int, beams: int
    ) -> tuple[Tensor, Tensor | None]:
        return self.call(model, scores, begin, length, beams)


# Trying out


def _answer(call: BeamCall, case: beam_choices.Case, *, training: bool = False) -> Any:
    return _called(call, case, "log-probabilities", training=training)[0]


def _called(
    call: BeamCall, case: beam_choices.Case, output: str, *, training: bool = False
) -> tuple[Any, Any]:
    model = call.stand_in(SIZES.but(alpha=case.alpha))
    model.train(training)
    scores = to_tensor(case.scores(output))
    begin = to_tensor(beam_choices.BEGIN)
    tokens, values = call(model, scores, begin, case.length, case.beams)
    return tokens.numpy(), None if values is None else values.numpy()


def _probing(call: BeamCall) -> Probing:
    return Probing(
        called=lambda case, output: _called(call, case, output),
        takes_alpha=call.roles.has("alpha"),
        stops=call.roles.has("end"),
        constants=_constants(call.function),
    )


def _exponent(call: BeamCall, choices: Mapping[str, Value]) -> float | None:
    """Return the exponent of a penalty that is said and has no argument: that in the code, or 1."""
    if call.roles.has("alpha") or choices.get("length_penalty", "none") == "none":
        return None
    return next(iter(_constants(call.function)), 1.0)


def _constants(function: Any) -> tuple[float, ...]:
    """Return numbers in the code of a function that may be the exponent of a length penalty."""
    code = getattr(function, "__code__", None)
    held = [one for one in getattr(code, "co_consts", ()) if isinstance(one, float)]
    return tuple(one for one in held if 0 < one <= 2)


def _ways(call: BeamCall, reading: Reading) -> Iterator[BeamCall]:
    firsts = {"sequence-first": (True,), "batch-first": (False,)}.get(reading.layout, (False, True))
    for alone in (False, True):
        for first in firsts:
            for counts_new in (False, True):
                for keeps_begin in (True, False):
                    for best in (False, True):
                        yield replace(
                            call,
                            alone=alone,
                            sequence_first=first,
                            counts_new=counts_new,
                            keeps_begin=keeps_begin,
                            best=best,
                        )


def _tried(call: BeamCall, name: str, reading: Reading) -> tuple[BeamCall, list[str]]:
    """Return the way of calling under which the best hypothesis of clear scores is found."""
    refusals: list[str] = []
    ran: list[BeamCall] = []
    cases = [beam_choices.peaked((0, 0)), beam_choices.peaked((3, 0))]
    for way in _ways(call, reading):
        for output in ("log-probabilities", "probabilities"):
            try:
                right = all(_finds_the_best(way, case, output) for case in cases)
            except Exception as failure:  # code that a user wrote may raise anything
                refusals.append(in_short(failure))
                break
            if right:
                return way, _words(way)
            if _is_plausible(way, cases[0], output):
                ran.append(way)
    if ran:
        return ran[0], [*_words(ran[0]), _NOT_RIGHT]
    what = "; ".join(list(dict.fromkeys(refusals))[:3]) or "the best sequence is not found"
    raise Unclear(
        f"{name} could not be called as beam_search with a scripted model, which has encode, "
        f"decode, a call and a generator, so that it finds a sequence that is much likelier than "
        f"all others. What was tried: {what}. Say which argument is which with --argument "
        f"ROLE=NAME, or write in a file of your own a recipe with attentest_spec.torch.Script."
    )


def _finds_the_best(way: BeamCall, case: beam_choices.Case, output: str) -> bool:
    tokens, _ = _called(way, case, output)
    return np.array_equal(case.cut(tokens[:, 0]), case.best(stops=way.roles.has("end")))


_NOT_RIGHT = (
    "assumed that it is called so: it does not find a sequence that is much likelier than the rest"
)


def _is_plausible(way: BeamCall, case: beam_choices.Case, output: str) -> bool:
    """Say whether wrong hypotheses have the start token once, and some their whole length."""
    tokens, _ = _called(way, case, output)
    starts = tokens == SIZES.start
    whole = bool((tokens[..., -1] != SIZES.target_pad).any())
    return whole and bool(starts[..., 0].all()) and not starts[..., 1].any()


def _words(call: BeamCall) -> list[str]:
    first = "sequence first" if call.sequence_first else "batch first"
    one = "one sequence at a time" if call.alone else "a whole batch"
    said = [f"it decodes {one}, {first} (as probing calls show)"]
    if call.best:
        said.append("the best hypothesis alone is judged: it does not return as many as its beam")
    if call.counts_new:
        said.append("assumed that its length counts new tokens alone")
    if not call.keeps_begin:
        said.append("its result does not contain the given tokens")
    return said


def _filling(call: BeamCall) -> dict[str, Value]:
    """Return what follows an end token, where the search itself writes it."""
    case = beam_choices.peaked((1, 0))
    tokens = _answer(call, case)[0, 0, 2:]
    return {"after_end": "end"} if set(tokens.tolist()) == {SIZES.end} else {}
