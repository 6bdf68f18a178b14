"""The pictures of learning curves, from plain values."""

import json

import pytest
from curves import FOUND, NAMES, curve

from attentest.studies.learning import Curve
from attentest.views.plots.drawing import render
from attentest.views.plots.learning import accuracy_curves, learning_curves, loss_curves

PLAIN = json.loads(json.dumps(FOUND.as_dict()))


def test_a_picture_holds_every_backend_and_its_numbers():
    (axes,) = loss_curves(PLAIN).axes
    shown = {one.get_label(): one for one in axes.lines if not one.get_label().startswith("_")}
    assert set(shown) == set(NAMES)
    assert list(shown["third"].get_xdata()) == [0, 50, 100]
    assert list(shown["third"].get_ydata()) == [0.123] * 3
    faint = [one for one in axes.lines if one.get_label().startswith("_")]
    assert [list(one.get_xdata()) for one in faint] == [[50, 100]] * 4
    (axes,) = accuracy_curves(PLAIN).axes
    assert list(axes.lines[0].get_ydata()) == [0.0, 0.5, 1.0]


def test_backends_are_told_apart_by_colour_and_style():
    (axes,) = accuracy_curves(PLAIN).axes
    assert len({one.get_color() for one in axes.lines}) == len(NAMES)
    assert len({one.get_linestyle() for one in axes.lines}) == len(NAMES)


def test_several_seeds_are_a_mean_and_a_band():
    several = {**PLAIN, "curves": [vars_of(curve("third", seed)) for seed in (0, 1)]}
    (axes,) = loss_curves({**several, "backends": ["third"]}).axes
    (line,) = (one for one in axes.lines if one.get_label() == "third")
    assert line.get_ydata()[0] == pytest.approx(0.173)
    (band,) = axes.collections
    assert band.get_datalim(axes.transData).bounds[3] == pytest.approx(0.1)


def vars_of(one: Curve):
    return json.loads(json.dumps({**vars(one), "points": [vars(point) for point in one.points]}))


def test_a_picture_is_written_with_text_as_text_and_no_background():
    text = render(learning_curves(PLAIN), "svg").decode()
    assert "some &lt;b&gt;style&lt;/b&gt;" in text
    assert "held-out sequences right" in text
    assert "#ffffff" not in text


@pytest.mark.proof
@pytest.mark.parametrize(("kind", "beginning"), [("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_the_same_picture_is_the_same_file(kind, beginning, monkeypatch):
    first = render(learning_curves(PLAIN), kind)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")  # what a file would tell of another day
    assert render(learning_curves(PLAIN), kind) == first
    assert first.startswith(beginning)


def test_nothing_learned_is_an_empty_picture():
    assert learning_curves({**PLAIN, "backends": [], "curves": []}).axes
