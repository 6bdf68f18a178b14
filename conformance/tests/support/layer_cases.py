"""Calls of layers and stacks that answer with the oracle, bent where a test wants it."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_backend import Bend, OracleBackend, OraclePart, claimed

from attentest.harness.copies import cast
from attentest.harness.subject import Subject
from attentest.testing.draw import Draw
from attentest.testing.layer_calls import LayerCall
from attentest_spec import Limits, Sizes
from attentest_spec.parameters import draw as draw_parameters

SIZES = Sizes(d_model=6, heads=2, d_ff=7, layers=2)
RNG = np.random.default_rng(3)
X = np.round(RNG.normal(size=(2, 4, 6)), 2)
MEMORY = np.round(RNG.normal(size=(2, 5, 6)), 2)
PADDING = np.array([[1, 1, 0, 1], [1, 0, 0, 1]], bool)[:, None, None]
SOURCE = np.array([[1, 0, 1, 1, 1], [1, 1, 1, 0, 0]], bool)[:, None, None]
CAUSAL = np.tri(4, dtype=bool)[None, None]
EVERY = settings(max_examples=40, database=None, deadline=None, derandomize=True)


def straight(answer: Any, part: OraclePart) -> Any:
    return answer


def subject_of(bend: Bend = straight, **about: Any) -> Subject:
    """Return a subject; `about` may hold limits, the class of part, and choices."""
    limits = {name: about.pop(name) for name in list(about) if name in Limits.__annotations__}
    made = {name: about.pop(name) for name in ("part", "components") if name in about}
    return Subject(OracleBackend(bend, limits=Limits(**limits), choices=about, **made))


def case(
    component: str = "encoder_layer",
    bend: Bend = straight,
    *,
    mask: Any = PADDING,
    precision: str = "float64",
    sizes: Sizes = SIZES,
    **about: Any,
) -> LayerCall:
    """Return a call of a part that answers with the bent oracle."""
    subject = subject_of(bend, **about)
    drawn = draw_parameters(component, sizes, subject.choices, np.random.default_rng(7))
    given = {name: cast(values, precision) for name, values in drawn.items()}
    probe = subject.part(component, sizes, parameters=given, precision=precision)
    if component.startswith("decoder"):
        return LayerCall(probe, X, CAUSAL if mask is PADDING else mask, MEMORY, SOURCE)
    return LayerCall(probe, X, mask)


def seeded(one: LayerCall | Subject) -> Draw:
    subject = one if isinstance(one, Subject) else one.probe.subject
    return Draw(draw_once, subject, np.random.default_rng(11))  # type: ignore[arg-type]


def draw_once(strategy: Any) -> Any:
    """Draw an example of a strategy that is small enough to have one."""
    found: list[Any] = []
    once = settings(max_examples=1, database=None, deadline=None, derandomize=True)
    once(given(strategy)(lambda one: found.append(one)))()
    return found[0]


def gathered(ask: Callable[[Draw], Any], **about: Any) -> list[Any]:
    """Return what is drawn in many examples."""
    found: list[Any] = []
    subject = subject_of(**about)

    @settings(max_examples=120, database=None, deadline=None, derandomize=True)
    @given(data=st.data())
    @claimed()
    def example(data: st.DataObject) -> None:
        found.append(ask(Draw.of(data.draw, subject)))

    example()
    return found


def wrong_at(position: int, by: float = 0.1) -> Bend:
    """Return what makes the output wrong at one position of the second sample."""

    def bend(answer: Any, part: Any) -> Any:
        answer[1, position] += by
        return answer

    return bend
