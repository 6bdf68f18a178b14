"""Checks of the chapter `language_model`: several documents in one row."""

from typing import Annotated

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_language_model.cases import (
    Text,
    agree,
    draw_text,
    require_mask,
    shows_declared,
    supported_kinds,
)
from attentest.testing.draw import Draw
from attentest_spec.setting import Array

Lengths = tuple[int, ...]


@check("language_model.packed-documents", examples=4)
def test_packed_documents(subject: Subject, draw: Draw) -> None:
    supported_kinds(subject, ("per-sample",))
    side = "right" if draw.choose((True, False)) and _hides_padding(subject) else ""
    case = draw_text(subject, draw, length=draw.length(6, 9), batch=3, side=side)
    shows_declared(case.but(positions=_drawn(draw, case)[0]), "packed_documents")


@check("language_model.document-alone", examples=4)
def test_document_alone(subject: Subject, draw: Draw) -> None:
    if subject.choices.packed_documents != "by-positions":
        raise Absent(f"a row is one text for {subject.name}")
    if subject.choices.rotary_scaling == "dynamic-ntk":
        raise Absent("the frequencies depend on the greatest position of the row")
    supported_kinds(subject, ("per-sample",))
    case = draw_text(subject, draw, length=draw.length(6, 9), batch=2)
    positions, lengths = _drawn(draw, case)
    packed = case.but(positions=positions)
    together = packed.output()
    for row, counts in enumerate(lengths):
        ends = np.cumsum(counts)
        for start, end in zip(ends - counts, ends, strict=True):
            own = np.s_[row : row + 1, start:end]
            alone = packed.but(tokens=case.tokens[own], positions=positions[own])
            what = f"output of a document alone, of tokens {start} to {end - 1} of a row"
            agree(alone, alone.output(), together[own], what=what)


def _hides_padding(subject: Subject) -> bool:
    try:
        require_mask(subject)
    except Absent:
        return False
    return True


def _drawn(draw: Draw, case: Text) -> tuple[Annotated[Array, "B T"], list[Lengths]]:
    """Draw positions (B, T) of three documents in each row, and the lengths of these.

    The second one begins at another position than 0, and after a smaller one: it is a text that
    was cut. No two rows have documents of the same lengths.
    """
    batch, length = case.tokens.shape
    most = case.probe.sizes.max_length
    found, lengths = np.zeros((batch, length), dtype=np.int64), list[Lengths]()
    for row in range(batch):
        first = 1 + (row + draw.integer(0, 1)) % (length - 3)
        second = draw.integer(1, length - first - 1)
        counts = first, second, length - first - second
        begun = draw.integer(first + 1, most - second)
        places = (np.arange(first), begun + np.arange(second), np.arange(counts[2]))
        found[row] = np.concatenate(places)
        lengths.append(counts)
    return found, lengths
