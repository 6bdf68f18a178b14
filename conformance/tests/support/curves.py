"""Learning curves of several backends, for the tests of their views."""

from attentest.studies.learning import Curve, Learning, Point, Regime

NAMES = ("first & co", "some <b>style</b>", "third", "fourth")


def curve(name: str, seed: int) -> Curve:
    points = [
        Point(step, 2.0 / (step + 1) if step else None, 0.123 + seed / 10, step / 200, step / 100)
        for step in (0, 50, 100)
    ]
    return Curve(name, seed, tuple(points), 1.5, 1.25)


FOUND = Learning(
    Regime.of("copy", steps=100, every=50).as_dict(),
    (0,),
    dict.fromkeys(NAMES, 12345),
    {"output": dict.fromkeys(NAMES, "logits")},
    tuple(curve(name, 0) for name in NAMES),
    ("Something is to be known.",),
    (),
)
