"""The cost of backends: rounds, failures, memory, results; hostile backends."""

import json
import mmap
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from arrival import arrivals, hurried
from costs import QUICK, clockwork
from proof import share

from attentest.faults.reference_models import Plain, reference_backend
from attentest.harness.description import Facts
from attentest.harness.errors import Stopped, Unavailable
from attentest.harness.process import LOAD_LIMIT, Isolation
from attentest.studies.cost import BOTH, FORWARD, BadPlan, Plan, measure
from attentest.studies.cost.clock import seconds
from attentest.studies.cost.measure import rotated, side_by_side
from attentest.studies.cost.memory import GIVING_BACK, MIB, RESOLUTION, _sampled, peak
from attentest.studies.cost.participant import TwoProcesses, facts, holding
from attentest.studies.cost.plan import Point
from attentest.studies.cost.result import FLOPS, Spread
from attentest.studies.cost.stand import Stand
from attentest.studies.participants import Local
from attentest_spec import Choices, Limits, UnknownName


def test_every_round_has_each_once_and_begins_with_another() -> None:
    assert rotated("abc", 0) == ["a", "b", "c"]
    assert rotated("abc", 4) == ["b", "c", "a"]
    stands, diary = clockwork(1, 2, 3)
    side_by_side(stands, QUICK)
    rounds = [diary[start : start + 3] for start in range(0, len(diary), 3)]
    assert all(sorted(one) == ["a", "b", "c"] for one in rounds)
    assert Counter(one[0] for one in rounds[:6]) == {"a": 2, "b": 2, "c": 2}


def test_ratios_are_to_the_first_and_growth_is_told() -> None:
    stands, _ = clockwork(1.0, 2.5)
    found = side_by_side(stands, QUICK)
    assert found.backends == ("a", "b")
    assert len(found.measurements) == 4 * 2 * 2  # points, passes, backends
    for one in found.measurements:
        assert one.ratio == Spread(*([1.0 if one.backend == "a" else 2.5] * 3))
    grown = {(one.over, one.quantity): one for one in found.growths if one.backend == "b"}
    assert grown["length", "time"].exponent == pytest.approx(1)
    assert grown["length", "memory"].exponent == pytest.approx(2)
    assert grown["length", "memory"].shares == pytest.approx((0, 0, 1), abs=1e-9)
    assert grown["width", "time"].terms is None  # two widths are too few
    assert grown["length", FLOPS].error is None


@pytest.mark.parametrize("when", ["facts", "prepare", "sample"])
def test_one_that_fails_is_left_out_and_told(when: str) -> None:
    stands, _ = clockwork(1, 2, 4, a=when)
    found = side_by_side(stands, QUICK)
    assert found.backends == ("b", "c")
    assert [(one.backend, one.loaded) for one in found.failures] == [("a", True)]
    assert {one.ratio.median for one in found.measurements} == {1, 2}


def test_nothing_is_left() -> None:
    stands, _ = clockwork(1, a="facts")
    found = side_by_side(stands, QUICK)
    assert (found.backends, found.measurements, found.rows()) == ((), (), [])
    assert found._repr_html_() == ""


def test_a_plan_is_fitted_to_all() -> None:
    facts = {
        "a": Facts(("attention", "layer_norm"), Choices(), Limits(length=8, layers=1)),
        "b": Facts(("layer_norm", "attention"), Choices(), Limits(heads=1, inner=2, cross=False)),
    }
    plan = Plan(lengths=(4, 8, 16)).fitted(facts)
    assert (plan.component, plan.lengths, plan.length) == ("attention", (4, 8), 8)
    assert (plan.heads, plan.layers, plan.inner) == (1, 1, 2)
    assert len(plan.notes) == 4
    assert not plan.example(Point(4, 8)).cross
    assert Plan.from_dict(json.loads(json.dumps(plan.as_dict()))) == plan
    with pytest.raises(BadPlan, match="no component in common"):
        Plan().fitted(facts | {"c": Facts(("generator",), Choices(), Limits())})


def test_precision_is_float32_where_all_compute_in_it() -> None:
    coarse, fine = Limits(), Limits(precisions=("float64",))
    facts = {"a": Facts(("attention",), Choices(), coarse)}
    assert Plan().fitted(facts).precision == "float32"
    assert Plan(precision="float64").fitted(facts).precision == "float64"
    assert Plan().fitted({**facts, "b": replace(facts["a"], limits=fine)}).precision == "float64"


def test_loops_over_tokens_are_not_measured() -> None:
    facts = {"a": Facts(("sampling",), Choices(), Limits())}
    with pytest.raises(BadPlan, match="sampling is a loop over tokens"):
        Plan().fitted(facts)
    with pytest.raises(BadPlan, match="greedy_decoding is a loop over tokens"):
        Plan(component="greedy_decoding")
    both = {"a": Facts(("sampling", "attention"), Choices(), Limits())}
    assert Plan().fitted(both).component == "attention"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"widths": (6,)}, "cannot be divided among 4 heads"),
        ({"lengths": (0,)}, "lengths is 0"),
        ({"repeat": 0}, "repeat is 0"),
        ({"lengths": (), "widths": ()}, "nothing to measure"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(BadPlan, match=told):
        Plan(**wrong)
    for unknown in ({"precision": "float8"}, {"component": "attenshun"}):
        with pytest.raises(UnknownName):
            Plan(**unknown)  # type: ignore[arg-type]


def test_a_backend_object_is_measured_here_without_its_memory() -> None:
    plan = Plan(
        lengths=(2, 3), widths=(), length=2, width=4, heads=2, layers=1, repeat=2,
        precision="float64",
    )  # fmt: skip
    found = measure(reference_backend(Plain), plan=plan)
    assert not found.failures
    assert {one.which for one in found.measurements} <= {FORWARD, BOTH}
    assert all(one.memory is None and one.counted == one.flops for one in found.measurements)
    assert all(
        one.seconds.low <= one.seconds.median <= one.seconds.high for one in found.measurements
    )
    row = found.rows()[0]
    assert {"backend", "length", "seconds", "ratio_low", "speed_high", "memory"} <= set(row)
    assert "<td>model</td>" not in found._repr_html_()
    assert found._repr_html_().count("<tr>") == 1 + len(found.rows())


def test_a_precision_that_is_not_claimed_is_told() -> None:
    exact = replace(reference_backend(Plain), limits=Limits(precisions=("float64",)))
    with pytest.raises(Unavailable, match="does not compute in float16"):
        Stand(exact).prepare(Plan(component="layer_norm", precision="float16"), Point(2, 4))


def test_time_that_a_thread_waits_for_others_to_answer_counts() -> None:
    """Only waiting for a processor is taken out; sleeping stands for a device or a child."""
    import time

    assert seconds(lambda: time.sleep(0.01)) >= 0.01 * 0.9


HOSTILE = """
import os, time
from attentest.faults.reference_models import Plain, reference_backend

class Wrapped:
    def __init__(self):
        self.inner = reference_backend(Plain, name="hostile")
    def __getattr__(self, name):
        return getattr(self.inner, name)
    name = title = "hostile"
    choices = property(lambda self: self.inner.choices)
    limits = property(lambda self: self.inner.limits)
    components = property(lambda self: self.inner.components)
    def build(self, *given, **named):
        {doing}

backend = Wrapped()
sound = reference_backend(Plain, name="sound")
"""

DOINGS = {
    "raise SystemExit(3)": "SystemExit",
    "os._exit(7)": "exit code 7",
    "{announced}; time.sleep(86400)": "no answer within 3600 seconds",
}


@pytest.mark.proof
@share(3)
@pytest.mark.parametrize("doing", DOINGS)
def test_a_hostile_backend_is_refused_with_the_reason(doing: str, tmp_path: Path) -> None:
    file = tmp_path / "hostile.py"
    with (
        arrivals() as place,
        hurried(place, 3600.0),
        TwoProcesses(str(file), Isolation(seconds=3600.0, loading=LOAD_LIMIT)) as hostile,
    ):
        file.write_text(HOSTILE.format(doing=doing.format(announced=place.code)))
        plan = Plan(component="layer_norm").fitted({"it": facts(hostile)})
        with pytest.raises(Unavailable, match=DOINGS[doing]):
            holding(hostile, plan, Point(4, 4))
        ended = hostile._child is None
        assert ended == (DOINGS[doing] != "SystemExit")  # an answer like any other


def test_first_call_does_not_count_in_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = iter([1.0, 1e-4, 1.0, 1e-4])  # each pass is slow at its first call alone
    monkeypatch.setattr("attentest.studies.cost.stand.seconds", lambda action: next(times))
    stand = Stand(reference_backend(Plain))
    stand.prepare(replace(QUICK, component="layer_norm"), Point(3, 4))
    assert stand._often == {FORWARD: 20, BOTH: 20}


def test_an_interruption_ends_those_that_are_asked_meanwhile() -> None:
    stop, asked, ended = threading.Event(), threading.Event(), []

    def slow() -> None:
        asked.set()
        ended.append(stop.wait(60))

    def interrupted() -> None:
        asked.wait(60)
        raise KeyboardInterrupt

    stands: Any = {
        "here": Local({"facts": interrupted}),
        "slow": Local({"facts": slow}),
    }
    with pytest.raises(KeyboardInterrupt):
        side_by_side(stands, QUICK, stop=stop)
    assert ended == [True]


def test_a_process_is_given_up_once_it_is_stopped(tmp_path: Path) -> None:
    file = tmp_path / "slow.py"
    file.write_text("import time; time.sleep(60)")
    stop = threading.Event()
    stop.set()
    isolation = Isolation(stop=stop)
    with TwoProcesses(str(file), isolation) as slow, pytest.raises(Stopped):
        facts(slow)


PEAKS = """
import numpy as np
from attentest.studies.cost.memory import MIB, peak

def take(mib):
    return lambda: np.ones(int(mib * MIB), dtype=np.int8).sum()

take(16)()
print([peak(take(mib)) / MIB for mib in (0.5, 16, 1, 4)])
"""


def test_a_known_peak_is_found(tmp_path: Path) -> None:
    """The sum works in blocks: what is seen is the array, to the resolution."""
    import os
    import subprocess
    import sys

    environment = {**os.environ, **GIVING_BACK, "OMP_NUM_THREADS": "1"}
    told = subprocess.run(
        [sys.executable, "-c", PEAKS], env=environment, capture_output=True, text=True, check=True
    )
    found: Sequence[float] = json.loads(told.stdout)
    assert found == pytest.approx([0.5, 16, 1, 4], abs=RESOLUTION / MIB)


class WatchedProcess(psutil.Process):
    """A process that reports each look at its memory."""

    looked = threading.Event()

    def memory_info(self) -> Any:
        """Return the memory in use, and report that somebody looked."""
        info = super().memory_info()
        self.looked.set()
        return info


def fresh_pages() -> np.ndarray:
    """Return 64 MiB of pages that are new: memory that malloc has kept would hide the peak."""
    held = np.frombuffer(mmap.mmap(-1, 64 * MIB), dtype=np.int8)
    held[:] = 1
    return held


def test_large_peak_is_seen_by_sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "Process", WatchedProcess)

    def take() -> None:
        held = fresh_pages()
        for _ in range(2):  # the first look may have begun before the array was there
            WatchedProcess.looked.clear()
            assert WatchedProcess.looked.wait(60)
        del held

    assert 60 * MIB < _sampled(take) < 80 * MIB


def test_large_peak_is_seen_exactly() -> None:
    def take() -> None:
        held = fresh_pages()
        del held

    assert 60 * MIB < peak(take) < 80 * MIB
