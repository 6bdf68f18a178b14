"""Backends whose times are fixed, for the tests of costs."""

from dataclasses import asdict
from typing import Any

from attentest.harness.errors import Unavailable
from attentest.studies.cost import BOTH, FORWARD, Plan
from attentest.studies.cost.memory import MIB
from attentest.studies.cost.plan import Point
from attentest.studies.cost.stand import Holding

QUICK = Plan(
    precision="float32",
    lengths=(3, 6, 12),
    widths=(4, 8),
    length=3,
    width=4,
    heads=2,
    layers=1,
    repeat=5,
)


class Clockwork:
    """A participant whose times are fixed: `pace` seconds a token, and a diary of all of them."""

    def __init__(self, name: str, pace: float, diary: list[str], fails: str = "") -> None:
        self.name, self.pace, self.diary, self.fails = name, pace, diary, fails
        self.point = Point(0, 0)

    def call(self, method: str, listen: object = None, **arguments: Any) -> Any:
        return getattr(self, method)(**arguments)

    def facts(self) -> dict[str, Any]:
        if self.fails == "facts":
            raise Unavailable("it says nothing")
        return {"components": ["attention", "model"], "choices": {}, "limits": {}}

    def holding(self, plan: dict[str, Any], point: dict[str, int]) -> dict[str, Any]:
        peaks = {which: [point["length"] ** 2 * MIB] for which in Plan.from_dict(plan).passes}
        return asdict(Holding(7, {FORWARD: 10, BOTH: None}, peaks))

    def prepare(self, plan: dict[str, Any], point: dict[str, int]) -> None:
        self.point = Point(**point)
        if self.fails == "prepare" and self.point.length == 6:
            raise Unavailable("too long for it")

    def sample(self, which: str) -> dict[str, float]:
        self.diary.append(self.name)
        if self.fails == "sample" and self.diary.count(self.name) > 3:
            raise Unavailable("it is tired")
        return {"seconds": self.pace * self.point.length, "yardstick": 1e-9}


def clockwork(*paces: float, **fails: str) -> tuple[dict[str, Any], list[str]]:
    diary: list[str] = []
    names = [chr(ord("a") + number) for number in range(len(paces))]
    return {
        name: Clockwork(name, pace, diary, fails.get(name, ""))
        for name, pace in zip(names, paces, strict=True)
    }, diary
