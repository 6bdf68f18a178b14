"""Checks of the chapter `language_model`: the numbers under every choice, in every precision."""

from copy import copy
from typing import Any

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_language_model.cases import (
    Text,
    draw_positions,
    draw_text,
    given_kinds,
    matches_text,
    model_sizes,
    output_changes,
    padding,
    shows_declared,
    sides,
    with_parameter,
    with_shared_heads,
)
from attentest.testing.assertions import finite, holds, matches
from attentest.testing.common import half_precisions, same_precision
from attentest.testing.draw import Draw
from attentest.testing.sizes_in_use import LONG, MANY, WIDE, WORDS, SizesInUse, at_sizes_in_use
from attentest_spec.contract import Input


def _formula_in_use(subject: Subject, draw: Draw, size: SizesInUse) -> None:
    sizes = with_shared_heads(subject, size.sizes(subject))
    probe = subject.part(
        "language_model", sizes, parameters=draw.parameters("language_model", sizes)
    )
    shape = (size.batch, size.length)
    matches_text(Text(probe, draw.rng.integers(0, sizes.target_vocabulary, size=shape)))


@check(
    "language_model.formula",
    examples=3,
    in_use=at_sizes_in_use(_formula_in_use, WIDE, MANY, LONG, WORDS),
)
def test_formula(subject: Subject, draw: Draw) -> None:
    matches_text(draw_text(subject, draw, layers=draw.layers(1, 3)))
    size = draw.long(37)
    fixed: dict[str, Any] = {"max_length": size, "layers": draw.deepest()}
    if subject.choices.key_heads != "fewer":
        fixed["heads"] = draw.several()
    matches_text(draw_text(subject, draw, length=size, **fixed))


def _layer_in_use(subject: Subject, draw: Draw, size: SizesInUse) -> None:
    sizes = with_shared_heads(subject, size.sizes(subject))
    probe = subject.part("causal_layer", sizes, parameters=draw.parameters("causal_layer", sizes))
    x = draw.floats(size.batch, size.length, sizes.d_model)
    matches(probe, x, None, None, actual=probe.output(x, None, None))


@check(
    "language_model.layer-formula",
    examples=5,
    in_use=at_sizes_in_use(_layer_in_use, WIDE, MANY, LONG),
)
def test_layer_formula(subject: Subject, draw: Draw) -> None:
    sizes = model_sizes(subject, draw)
    parameters = draw.parameters("causal_layer", sizes)
    probe = subject.part("causal_layer", sizes, parameters=parameters)
    batch, length = draw.choose((3, 2)), draw.length(3, 7)
    x = draw.floats(batch, length, sizes.d_model)
    hides = "padding" in subject.limits.masks
    mask = padding(draw, batch, length, draw.choose(sides(subject))) if hides else None
    calls: list[tuple[Input, ...]] = [(x, None, None), (x, mask, None)]
    kinds = [one for one in ("per-sample", "shared", "offset") if one in subject.limits.positions]
    if kinds:
        places = draw_positions(draw, kinds[0], batch, length, sizes.max_length)
        calls.append((x, None, places))
    for inputs in calls:
        rows = np.ones((batch, length), dtype=bool) if inputs[1] is None else mask
        matches(probe, *inputs, actual=probe.output(*inputs), rows=rows)


@check("language_model.norm-kind", examples=4)
def test_norm_kind(subject: Subject, draw: Draw) -> None:
    shows_declared(draw_text(subject, draw), "norm_kind")


@check("language_model.block-norms", examples=4)
def test_block_norms(subject: Subject, draw: Draw) -> None:
    shows_declared(draw_text(subject, draw, layers=1), "block_norms")


@check("language_model.block-layout", examples=4)
def test_block_layout(subject: Subject, draw: Draw) -> None:
    shows_declared(draw_text(subject, draw), "block_layout")


@check("language_model.rotary", examples=4)
def test_rotary(subject: Subject, draw: Draw) -> None:
    case = draw_text(subject, draw, length=draw.length(5, 9), layers=draw.layers(2, 3))
    shows_declared(case, "attention_rotary")


@check("language_model.every-layer-counts", examples=2)
def test_every_layer_counts(subject: Subject, draw: Draw) -> None:
    case = draw_text(subject, draw, layers=draw.layers(2, 3))
    for number in range(case.probe.sizes.layers):
        for matrix in ("self_attention.output", "feed_forward.outer"):
            name = f"layers.{number}.{matrix}.weight"
            before, values = case.but(probe=copy(case.probe)), case.probe.parameters[name]
            first = before.output().copy()
            moved = with_parameter(case, name, values + draw.floats(*values.shape))
            after = matches_text(moved)
            # Where all that is multiplied by the matrix is 0, as behind a ReLU, nothing changes.
            output_changes(before, moved, first, after, case.real, f"with another {name}")


@check("language_model.float32", examples=3)
def test_float32(subject: Subject, draw: Draw) -> None:
    case = draw_text(subject, draw, precision="float32", layers=draw.layers(1, 2))
    actual = case.output()
    same_precision(case.probe, actual)
    matches_text(case, actual, "output in float32")
    kinds = [one for one in ("per-sample", "offset") if one in subject.limits.positions]
    if kinds:
        # Numbers above 256 are not all numbers of bfloat16.
        most = min(1500, subject.limits.length or 1500)
        far = draw_text(subject, draw, precision="float32", length=4, max_length=most)
        last = np.tile(np.arange(most - 4, most), (len(far.tokens), 1))
        matches_text(far.but(positions=last), what="output in float32 at far positions")


@check("language_model.half-precision", examples=2)
def test_half_precision(subject: Subject, draw: Draw) -> None:
    for precision in half_precisions(subject):
        side = draw.choose(sides(subject)) if "padding" in subject.limits.masks else ""
        case = draw_text(subject, draw, precision=precision, side=side)
        output = case.probe.output(*case.inputs)
        same_precision(case.probe, output)
        real = output[case.real]
        finite(real)
        holds(float(np.ptp(real.astype(float))) > 0, "The output is the same everywhere.")


@check("language_model.positions-given", examples=4)
def test_positions_given(subject: Subject, draw: Draw) -> None:
    kinds = given_kinds(subject)[:1]
    if not _has_positions(subject):
        raise Absent(f"{subject.name} has no positions")
    # As many sequences as heads in some examples, where a wrong axis raises no error.
    case = draw_text(subject, draw, kinds=kinds, batch=draw.choose((0, 2, 4)))
    matches_text(case)
    later = np.ascontiguousarray(np.roll(np.asarray(case.positions), 1, axis=0))
    matches_text(case.but(positions=later))
    if kinds == ["per-sample"]:  # as in a row of two documents
        length, cut = case.tokens.shape[1], draw.integer(2, case.tokens.shape[1] - 1)
        again = np.concatenate([np.arange(cut), np.arange(length - cut)])
        matches_text(case.but(positions=np.tile(again, (len(case.tokens), 1))))


def _has_positions(subject: Subject) -> bool:
    choices = subject.choices
    return choices.attention_rotary != "none" or choices.positional_encoding != "none"
