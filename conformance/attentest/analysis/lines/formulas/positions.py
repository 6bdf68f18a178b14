"""The formula of the positional encoding, and how it is got wrong."""

from collections.abc import Iterator

import numpy as np

from attentest.analysis.lines.formula import Formula, Mistake, Step
from attentest_spec import Setting
from attentest_spec.parameters import first_position, learned_positions
from attentest_spec.positional_encoding import table
from attentest_spec.setting import Array


def positions(formula: Formula, part: str, x: Step) -> Step:
    """Add the position table and its sum with x."""
    prefix = f"{part}." if part else ""
    choices = formula.choices
    if choices.positional_encoding == "none":
        return x
    length, width = x.value.shape[-2:]
    given = formula.setting.under(part) if part else formula.setting
    place = x.axes[-2]
    learned = learned_positions(choices)
    weight = formula.parameter(f"{prefix}weight", "PD") if learned else None
    sources = () if weight is None else (weight,)
    if not learned:
        _waves(formula, part, length, width, given)
    rows = formula.step(
        part,
        "position rows",
        lambda *weight: table(given, length, width),
        *sources,
        text="the table's row of every position",
        axes=f"{place}D",
        mistakes=[] if learned else list(_other_tables(given, length, width)),
    )
    return formula.step(
        part,
        "encoded rows",
        lambda x, rows: x + rows,
        x,
        rows,
        text="x + the row of each position",
        axes=x.axes,
        mistakes=[
            Mistake("x without the rows", lambda x, r: x),
            Mistake("the rows without x", lambda x, r: np.broadcast_to(r, x.shape)),
            Mistake("x - the row of each position", lambda x, r: x - r),
            Mistake("x * the row of each position", lambda x, r: x * r),
            Mistake("x + the row of each position, twice", lambda x, r: x + 2 * r),
            Mistake(
                "x * sqrt(d_model) + the row of each position",
                lambda x, r: x * np.sqrt(x.shape[-1]) + r,
            ),
            Mistake(
                "x + the row of each sample instead of each position",
                lambda x, r: x + r[: len(x), None] if len(r) >= len(x) else x,
            ),
            Mistake(
                "(x + the row of each position) * sqrt(d_model)",
                lambda x, r: (x + r) * np.sqrt(x.shape[-1]),
            ),
        ],
    )


def _waves(formula: Formula, part: str, length: int, width: int, given: Setting) -> None:
    """Add what code computes on its way to the sines, for the first rows and for all."""
    option = formula.choices.positional_encoding
    if option not in ("interleaved", "halves", "doubled-exponent"):
        return
    pairs = (width + 1) // 2
    double = 2 if option == "doubled-exponent" else 1
    exponent = double * 2 * np.arange(pairs) / width
    begin = first_position(formula.choices)
    for rows in {length, formula.sizes.max_length}:
        place = begin + np.arange(rows, dtype=np.float64)[:, None]
        angles = place / 10000.0**exponent
        whole = np.repeat(angles, 2, axis=1)[:, :width]
        arrays = {
            "positions": place,
            "angles": angles,
            "sines": np.sin(angles),
            "cosines": np.cos(angles)[:, : width // 2],
            "angle of every column": whole,
            "sine of every column": np.sin(whole),
            "cosine of every column": np.cos(whole),
            "whole table": table(given, rows, width) if rows != length else None,
        }
        for name, value in arrays.items():
            if value is not None and value.size > 1:
                _constant(formula, part, f"{name} ({rows})", value, "PF")
    rows_of_pairs = {
        "exponents": exponent,
        "wavelengths": 10000.0**exponent,
        "frequencies": 10000.0**-exponent,
        "even columns": 2.0 * np.arange(pairs),
        "pairs": np.arange(pairs, dtype=np.float64),
        "logarithms of wavelengths": np.log(10000.0) * exponent,
        "logarithms of frequencies": -np.log(10000.0) * exponent,
    }
    for name, value in rows_of_pairs.items():
        if value.size > 1:
            _constant(formula, part, name, value, "F")
        _constant(formula, part, f"{name} by column", np.repeat(value, 2)[:width], "F")


def _constant(formula: Formula, part: str, name: str, value: Array, axes: str) -> None:
    text = f"the {name.partition(' (')[0]}"
    formula.step(part, name, lambda: value, text=text, axes=axes, optional=True)


def _other_tables(given: Setting, length: int, width: int) -> Iterator[Mistake]:
    option = given.choices.positional_encoding
    others = {
        "interleaved": "sine on even and cosine on odd columns, exponent 2i/d",
        "halves": "all sines, then all cosines",
        "doubled-exponent": "sines and cosines with the exponent 4i/d",
        "halves-inclusive": "halves with the exponent i/(d/2 - 1)",
    }
    for name, text in others.items():
        if name != option:
            other = Setting(given.sizes, given.choices.but(positional_encoding=name))
            yield Mistake(text, lambda other=other: table(other, length, width))
    begin = first_position(given.choices)
    later = table(Setting(given.sizes, given.choices), length + 1, width)
    yield Mistake(f"rows that begin at position {begin + 1}", lambda: later[1:])
    if width % 2 == 0:
        rows = later[:-1].reshape(length, -1, 2)
        if option != "halves":
            yield Mistake(
                "cosine on even and sine on odd columns",
                lambda: rows[..., ::-1].reshape(length, width),
            )
