"""Backends whose times are fixed, for the tests of costs."""

from typing import Any

from attentest.harness.description import Facts
from attentest.harness.errors import Refused
from attentest.studies.cost import BOTH, FORWARD, Plan
from attentest.studies.cost.memory import MIB
from attentest.studies.cost.plan import Point
from attentest.studies.cost.stand import Holding, Sample
from attentest_spec import Choices, Limits

QUICK = Plan(lengths=(3, 6, 12), widths=(4, 8), length=3, width=4, heads=2, layers=1, repeat=5)


class Clockwork:
    """A backend whose times are set: `seconds` a token, and a diary that all of them share."""

    def __init__(self, name: str, pace: float, diary: list[str], fails: str = "") -> None:
        self.name, self.pace, self.diary, self.fails = name, pace, diary, fails
        self.point = Point(0, 0)

    def facts(self) -> Facts:
        if self.fails == "facts":
            raise Refused("it says nothing")
        return Facts(("attention", "model"), Choices(), Limits())

    def holding(self, plan: Plan, point: Point) -> Holding:
        peaks = {which: [point.length**2 * MIB] for which in plan.passes}
        return Holding(7, {FORWARD: 10, BOTH: None}, peaks)

    def prepare(self, plan: Plan, point: Point) -> None:
        self.point = point
        if self.fails == "prepare" and point.length == 6:
            raise Refused("too long for it")

    def sample(self, which: str) -> Sample:
        self.diary.append(self.name)
        if self.fails == "sample" and self.diary.count(self.name) > 3:
            raise Refused("it is tired")
        return Sample(self.pace * self.point.length, 1e-9)


def clockwork(*paces: float, **fails: str) -> tuple[dict[str, Any], list[str]]:
    diary: list[str] = []
    names = [chr(ord("a") + number) for number in range(len(paces))]
    return {
        name: Clockwork(name, pace, diary, fails.get(name, ""))
        for name, pace in zip(names, paces, strict=True)
    }, diary
