"""Checks of the chapter `multi_head_attention`: norms of queries and keys."""

from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_multi_head_attention.cases import (
    MultiHeadCall,
    build_loaded,
    draw_call,
    draw_sizes,
    shows_declared,
)
from attentest.testing.draw import Draw

MASKS = ("none", "padding", "per-sample", "causal")


@check("multi_head_attention.query-key-norm")
def test_query_key_norm(subject: Subject, draw: Draw) -> None:
    shows_declared(_call(subject, draw), "query_key_norm", ("none", "unit-length"))


@check("multi_head_attention.query-key-norm-place")
def test_query_key_norm_place(subject: Subject, draw: Draw) -> None:
    choices = subject.choices
    weighted = choices.query_key_norm in ("per-head", "whole-projection")
    if not weighted or choices.rms_weight == "none" or choices.attention_rotary == "none":
        raise Absent("no weights of a norm and positions whose order could show")
    places = "before-rotation", "after-rotation"
    shows_declared(_call(subject, draw), "query_key_norm_place", places)


def _call(subject: Subject, draw: Draw) -> MultiHeadCall:
    """Draw a call with two heads or more; steep scores, or the norm would hardly show."""
    probe = build_loaded(subject, draw, draw_sizes(draw, low=min(2, subject.limits.heads or 2)))
    length = draw.length(3)
    return draw_call(draw, probe, kinds=MASKS, lengths=(length, length), scale=3.0)
