"""Checks of the chapter `model`: saved states, copies and moves."""

import re
from collections.abc import Mapping
from typing import Any

from attentest.harness.copies import cast
from attentest.harness.errors import Absent, BackendError, Violation
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import distance
from attentest.judging.check import check
from attentest.results.text import summary
from attentest.suite.test_model.cases import (
    ModelCall,
    call_model,
    draw_call,
    draw_untied_parameters,
    first_names,
    inventory,
    model_sizes,
)
from attentest.testing.assertions import equal, holds, matches
from attentest.testing.common import same_precision
from attentest.testing.draw import Draw
from attentest_spec.parameters import shapes


@check("model.state-round-trip", examples=2)
def test_state_round_trip(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, dropout=0.5 if subject.limits.dropout else 0.0)
    case.probe.load(draw_untied_parameters(case, draw))
    if "mode" in case.probe.part.capabilities:
        case.probe.train()
        case.probe.output(*case.inputs)
        case.probe.eval()
    before = case.output()[case.real].copy()
    for _ in range(3):  # what is drawn at birth and not saved may come out alike once
        fresh = case.probe.become("saving and loading the state", lambda part: part.reloaded())
        what = "output of a fresh model that has loaded the state"
        equal(case.but(probe=fresh).output()[case.real], before, what=what)


@check("model.state-independent-of-max-length", examples=2)
def test_state_independent_of_max_length(subject: Subject, draw: Draw) -> None:
    longest = subject.limits.length or 9
    if longest < 2:
        raise Absent(f"{subject.name} is limited to length {longest}")
    sizes = model_sizes(subject, draw, layers=draw.layers(1, 2), max_length=longest)
    states = [
        inventory(subject.part("model", one))["state"]
        for one in (sizes, sizes.but(max_length=longest - 1))
    ]
    table = shapes("positional_encoding", sizes, subject.choices).get("weight")
    names = sorted(set(states[0]) | set(states[1]))
    differ = [
        f"{name} {states[0].get(name)}"
        for name in names
        if states[0].get(name) != states[1].get(name) and states[0].get(name) != table
    ]
    holds(bool(names), "The saved state is empty.")
    holds(
        not differ,
        f"With a greatest length of {longest} the state has another {first_names(differ)}.",
    )


@check("model.deep-copy", examples=2)
def test_deep_copy(subject: Subject, draw: Draw) -> None:
    _lives_on(subject, draw, "deepcopy", "deep copy")


@check("model.pickle", examples=2)
def test_pickle(subject: Subject, draw: Draw) -> None:
    _lives_on(subject, draw, "pickle", "pickled copy")


@check("model.picklable", examples=1)
def test_picklable(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw)
    try:
        case.probe.become("making a pickled copy", lambda part: part.copied("pickle"))
    except Absent as refusal:
        raise Violation(f"There is no pickled copy: {refusal.__cause__}.") from refusal


def _lives_on(subject: Subject, draw: Draw, how: str, name: str) -> None:
    """Demand that a copy computes the same, moves nothing of its original, and ties the same."""
    case = draw_call(subject, draw)
    before = case.output()[case.real].copy()
    copy = case.but(probe=case.probe.become(f"making a {name}", lambda part: part.copied(how)))
    equal(copy.output()[case.real], before, what=f"output of the {name}")
    parameters = draw_untied_parameters(case, draw)
    copy.probe.load(parameters)
    what = f"output of the original after loading into its {name}"
    equal(case.output()[case.real], before, what=what)
    after = copy.output()[case.real].copy()
    moved = distance(after, before) > 0
    holds(moved, f"Other parameters loaded into the {name} do not change its output.")
    case.probe.load(parameters)
    equal(case.output()[case.real], after, what=f"output of the original, loaded as its {name},")


@check("model.precision-move", examples=2)
def test_precision_move(subject: Subject, draw: Draw) -> None:
    subject.require_precision("float32")
    subject.require_precision("float64")
    case = draw_call(subject, draw, precision="float64")
    case.probe.load({name: cast(one, "float32") for name, one in case.probe.parameters.items()})
    moved = case.probe.become(
        "moving it to float32", lambda part: part.moved(precision="float32"), "float32"
    )
    held = _held(moved)
    wrong = [
        f"{name} ({facts['dtype']})"
        for name, facts in held.items()
        if "float" in facts["dtype"] and facts["dtype"] != "float32"
    ]
    holds(bool(held), "The inventory lists no arrays.")
    holds(not wrong, f"Moved to float32 the model still holds {first_names(wrong)}.")
    actual = call_model(moved, *case.inputs)
    same_precision(moved, actual)
    matches(moved, *case.inputs, actual=actual, rows=case.real, what="output after the move")


def _held(probe: Probe) -> dict[str, Mapping[str, Any]]:
    """Return the facts of every array that the part holds, wherever it keeps it."""
    listed = inventory(probe)
    return {
        f"{kind} {name}": facts
        for kind in ("parameters", "buffers", "loose")
        for name, facts in listed[kind].items()
    }


@check("model.device-move", examples=1)
def test_device_move(subject: Subject, draw: Draw) -> None:
    if not subject.limits.any_device:
        raise Absent(f"{subject.name} stays on the device that it is built for")
    case = draw_call(subject, draw, loaded=False, layers=draw.layers(1, 2))
    moved = case.probe.become("moving it to another device", lambda part: part.moved(device="meta"))
    held = _held(moved)
    behind = [
        f"{name} ({facts['device']})"
        for name, facts in held.items()
        if facts["device"] != "meta" and not _is_number(name, facts)
    ]
    holds(bool(held), "The inventory lists no arrays.")
    holds(
        not behind or _calls_move(case),
        f"{len(behind)} of {len(held)} arrays stayed behind: {first_names(behind)}.",
    )


def _is_number(name: str, facts: Mapping[str, Any]) -> bool:
    """Return whether an array is a plain attribute on the CPU without axes: it fits any device."""
    return name.startswith("loose ") and not facts["shape"] and facts["device"] == "cpu"


def _calls_move(case: ModelCall) -> bool:
    """Return whether a call on another device moves whatever stayed behind.

    Raises Absent where the call cannot be made there for another reason than its devices: the
    device meta holds no numbers, and what depends on them has no shape.
    """
    try:
        place = case.probe.do(
            "asking where the output lies on the device meta",
            lambda part: part.placed(case.inputs, "meta"),
        )
    except BackendError as error:
        if _OF_DEVICES.search(str(error.cause)):
            return False
        raise Absent(
            "arrays stay behind, and its calls, which may move them, need numbers that the device "
            f"meta does not have: {summary(error.cause)}"
        ) from error
    return bool(place == "meta")


_OF_DEVICES = re.compile("two devices|(expected|same) device")
"""The words of errors about tensors on two devices."""
