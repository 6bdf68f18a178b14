"""The formula of rotary positions, and how it is got wrong."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from attentest.analysis.lines.formula import Formula, Mistake, Step
from attentest_spec import Setting
from attentest_spec.rotary import columns, frequencies, magnitude
from attentest_spec.rotary import rotary as turned
from attentest_spec.setting import Array


def rotary(formula: Formula, part: str, x: Step, positions: Step | None) -> Step:
    """Add the pairs of columns of x, turned by angles that are proportional to the position."""
    whole = np.arange(x.value.shape[-2])
    places = positions or formula.leaf("positions", whole, "L", "the positions")
    waves = tables(formula, part, places, x.value.shape[-1])
    return turned_heads(formula, part, "", x, waves, None if positions is None else positions.value)


def tables(formula: Formula, part: str, places: Step, width: int) -> list[Step]:
    """Add cosines and sines of the angles at `places`, for heads of `width` columns."""
    choices = formula.choices
    speeds = frequencies(formula.sizes, choices, width, int(places.value.max(initial=0)) + 1)
    _constants(formula, part, speeds, float(choices.rotary_base))
    frequency = formula.step(
        part,
        "frequencies",
        lambda: speeds,
        text="base^(-2i/d) for pair number i",
        axes="N",
        mistakes=list(_other_frequencies(speeds, float(choices.rotary_base))),
    )
    angles = formula.step(
        part,
        "angles",
        lambda places, speeds: places[..., None] * speeds,
        places,
        frequency,
        text="position * frequency",
        axes="BLN"[-places.value.ndim - 1 :],
        mistakes=[
            Mistake("(position + 1) * frequency", lambda p, f: (p + 1)[..., None] * f),
            Mistake("angles of the positions in reverse", lambda p, f: p[..., ::-1, None] * f),
        ],
    )
    waves = _waves(formula, part, angles)
    _spread(formula, part, angles, waves)
    return waves


def turned_heads(
    formula: Formula,
    part: str,
    what: str,
    x: Step,
    waves: Sequence[Step],
    places: Array | None = None,
) -> Step:
    """Add x, which is `what`, with its pairs turned; "" for what is no part of attention."""
    both = columns(formula.choices, x.value.shape[-1])
    _columns(formula, part, f"{what} " * bool(what), x, both)
    _turned_columns(formula, part, f"{what} " * bool(what), x, waves)
    _in_pairs(formula, part, f"{what} " * bool(what), x, waves, both)
    return formula.step(
        part,
        f"turned {what}" if what else "result",
        lambda x, cosines, sines: _turned(x, cosines, sines, both),
        x,
        *waves,
        text="each pair (a, b) as (a cos - b sin, b cos + a sin)",
        axes=x.axes,
        mistakes=[
            *_other_turns(formula.setting, places),
            Mistake("(a cos + b sin, b cos - a sin)", lambda x, c, s: _turned(x, c, -s, both)),
            Mistake("(a sin - b cos, b sin + a cos)", lambda x, c, s: _turned(x, s, c, both)),
            Mistake(
                "(a cos - b sin, b cos - a sin)",
                lambda x, c, s: _turned(x, c, s, both, second=-s),
            ),
            Mistake(
                "(a cos + b sin, b cos + a sin)",
                lambda x, c, s: _turned(x, c, -s, both, second=s),
            ),
        ],
    )


def _waves(formula: Formula, part: str, angles: Step) -> list[Step]:
    """Add cosines and sines of the angles."""
    sign = -1.0 if formula.choices.rotary_direction == "backward" else 1.0
    factor = magnitude(formula.sizes, formula.choices)

    def rounded(wave: Array) -> Array:
        coarse = formula.choices.rotary_arithmetic == "float32"
        return wave.astype(np.float32).astype(np.float64) if coarse else wave

    def cosines(a: Array) -> Array:
        return rounded(factor * np.cos(a))

    def sines(a: Array) -> Array:
        return rounded(factor * np.sin(sign * a))

    add = partial(formula.step, part, axes=angles.axes)
    sine_of = "sines of the angles"
    return [
        add(
            "cosines",
            cosines,
            angles,
            text="cosines of the angles",
            mistakes=[Mistake(sine_of, sines)],
        ),
        add(
            "sines",
            sines,
            angles,
            text=sine_of,
            mistakes=[
                Mistake("cosines of the angles", cosines),
                Mistake("sines of minus the angles", lambda a: -sines(a)),
            ],
        ),
    ]


def _turned(
    x: Array,
    cosines: Array,
    sines: Array,
    both: Sequence[Array],
    second: Array | None = None,
) -> Array:
    """Return x (B, H, L, E) with its pairs turned; `second` are the sines of the second columns."""
    cosine, sine, other = (
        one if one.ndim < 3 else one[:, None]
        for one in (cosines, sines, sines if second is None else second)
    )
    one, two = both
    result = x.copy()
    result[..., one] = x[..., one] * cosine - x[..., two] * sine
    result[..., two] = x[..., two] * cosine + x[..., one] * other
    return result


def _constants(formula: Formula, part: str, speeds: Array, base: float) -> None:
    """Add what code computes on its way to the frequencies."""
    pairs = np.arange(len(speeds), dtype=np.float64)
    exponents = -np.log(speeds) / np.log(base)
    rows = {
        "pairs": pairs,
        "even columns": 2.0 * pairs,
        "exponents": exponents,
        "wavelengths": 1.0 / speeds,
        "logarithms of frequencies": np.log(speeds),
    }
    for name, value in rows.items():
        if value.size > 1:
            _constant(formula, part, name, value, "N")


def _spread(formula: Formula, part: str, angles: Step, waves: Sequence[Step]) -> None:
    """Add the optional forms of the tables: of all positions, of every column, and both in one."""
    halves = formula.choices.rotary_pairs == "halves"
    long = np.arange(formula.sizes.max_length)[:, None] * formula.steps[angles.number - 1].value
    for name, value, axes in (
        ("angles", angles.value, angles.axes),
        ("cosines", waves[0].value, angles.axes),
        ("sines", waves[1].value, angles.axes),
        ("angles of all positions", long, "PN"),
        ("cosines of all positions", np.cos(long), "PN"),
        ("sines of all positions", np.sin(long), "PN"),
    ):
        if axes == "PN":
            _constant(formula, part, name, value, axes)
        times = (1,) * (value.ndim - 1) + (2,)
        spread = np.tile(value, times) if halves else np.repeat(value, 2, axis=-1)
        _constant(formula, part, f"{name} of every column", spread, axes)
    formula.step(
        part,
        "cosines and sines",
        lambda *waves: np.stack(waves, axis=-1),
        *waves,
        text="cos + i sin of the angles",
        axes=f"{waves[0].axes}C",
        optional=True,
        mistakes=[
            Mistake("sin + i cos of the angles", lambda c, s: np.stack([s, c], axis=-1)),
            Mistake("cos - i sin of the angles", lambda c, s: np.stack([c, -s], axis=-1)),
        ],
    )


def _columns(formula: Formula, part: str, what: str, x: Step, both: Sequence[Array]) -> None:
    """Add the optional forms of x: the columns of its pairs, and x turned by 90 degrees."""
    one, other = both
    for name, columns_of in (("first", one), ("second", other)):
        formula.step(
            part,
            f"{what}{name} columns",
            lambda x, columns_of=columns_of: x[..., columns_of],
            x,
            text=f"the {name} columns of the pairs",
            axes=x.axes[:-1] + "N",
            optional=True,
        )

    def quarter(x: Array, first: float = -1.0, second: float = 1.0) -> Array:
        found = np.zeros_like(x)
        found[..., one], found[..., other] = first * x[..., other], second * x[..., one]
        return found

    def in_place(x: Array) -> Array:
        found = np.zeros_like(x)
        found[..., one], found[..., other] = -x[..., one], x[..., other]
        return found

    formula.step(
        part,
        f"{what}(-b, a)",
        quarter,
        x,
        text="(-b, a) for each pair",
        axes=x.axes,
        optional=True,
        mistakes=[
            Mistake("(b, a) for each pair", lambda x: quarter(x, first=1.0)),
            Mistake("(b, -a) for each pair", lambda x: quarter(x, first=1.0, second=-1.0)),
            Mistake("(-b, -a) for each pair", lambda x: quarter(x, second=-1.0)),
            Mistake("(-a, b) for each pair", in_place),
        ],
    )


def _turned_columns(formula: Formula, part: str, what: str, x: Step, waves: Sequence[Step]) -> None:
    """Add the optional forms of the result: the first and the second columns of its pairs."""
    one, other = columns(formula.choices, x.value.shape[-1])

    def of_rows(wave: Array) -> Array:
        return wave if wave.ndim < 3 else wave[:, None]

    for name, text, own, second, sign in (
        ("first", "a cos - b sin", one, other, -1.0),
        ("second", "b cos + a sin", other, one, 1.0),
    ):

        def turn(
            x: Array, c: Array, s: Array, own: Array = own, second: Array = second, by: float = sign
        ) -> Array:
            found: Array = x[..., own] * of_rows(c) + by * x[..., second] * of_rows(s)
            return found

        formula.step(
            part,
            f"turned {what}{name} columns",
            turn,
            x,
            *waves,
            text=f"{text} for each pair (a, b)",
            axes=x.axes[:-1] + "N",
            optional=True,
            mistakes=[
                Mistake(
                    text.replace("-", "?").replace("+", "-").replace("?", "+"),
                    lambda x, c, s, turn=turn: turn(x, c, -s),
                ),
                Mistake(
                    text.replace("cos", "?").replace("sin", "cos").replace("?", "sin"),
                    lambda x, c, s, turn=turn: turn(x, s, c),
                ),
            ],
        )


def _in_pairs(
    formula: Formula,
    part: str,
    what: str,
    x: Step,
    waves: Sequence[Step],
    both: Sequence[Array],
) -> None:
    """Add the optional forms with an axis for each pair, which complex numbers have."""
    add = partial(formula.step, part, optional=True)

    def paired(x: Array) -> Array:
        return np.stack([x[..., one] for one in both], axis=-1)

    def turned_pairs(x: Array, cosines: Array, sines: Array) -> Array:
        return paired(_turned(x, cosines, sines, both))

    axes = f"{x.axes[:-1]}NC"
    add(f"{what}pairs", paired, x, text="a + bi for each pair (a, b)", axes=axes)
    add(
        f"turned {what}pairs",
        turned_pairs,
        x,
        *waves,
        text="(a + bi) (cos + i sin) for each pair (a, b)",
        axes=axes,
        mistakes=[
            Mistake("(a + bi) (cos - i sin)", lambda x, c, s: turned_pairs(x, c, -s)),
            Mistake("(a + bi) (sin + i cos)", lambda x, c, s: turned_pairs(x, s, c)),
        ],
    )


def _constant(formula: Formula, part: str, name: str, value: Array, axes: str) -> None:
    formula.step(part, name, lambda: value, text=f"the {name}", axes=axes, optional=True)


def _other_frequencies(speeds: Array, base: float) -> Iterator[Mistake]:
    pairs = np.arange(len(speeds))
    exponents = -np.log(speeds) / np.log(base)
    for text, value in {
        "base^(2i/d), the wavelengths": 1.0 / speeds,
        "base^(-i/d)": base ** (-exponents / 2),
        "base^(-4i/d)": base ** (-2.0 * exponents),
        "base^(-2(i + 1)/d)": base ** (-exponents * (pairs + 1) / np.maximum(pairs, 1)),
        "the frequencies in reverse order": speeds[::-1],
    }.items():
        yield Mistake(text, lambda value=value: value)
    for other in (100.0, 1000.0, 10000.0, 100000.0, 500000.0, 1000000.0):
        if other != base:
            yield Mistake(f"{other:g}^(-2i/d)", lambda other=other: other**-exponents)


def _other_turns(given: Setting, places: Array | None) -> Iterator[Mistake]:
    """Yield other ways to turn the same pairs, by the choices."""
    paired = given.choices.rotary_pairs
    kind = {"adjacent": "halves", "halves": "adjacent"}[paired]
    words = {
        "adjacent": "the columns 2i and 2i + 1 turned together, not those of two halves",
        "halves": "the columns of two halves turned together, not 2i and 2i + 1",
    }
    other = Setting(given.sizes, given.choices.but(rotary_pairs=kind))
    yield Mistake(words[kind], lambda x, *_: turned(other, x, places))
