"""A comparison as plain values, as rows of a data frame, and in a notebook."""

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from compared import believed, part_of, plain

from attentest.results import files
from attentest.studies.comparison import Comparison


@pytest.fixture(scope="module")
def found() -> Comparison:
    return believed(plain(), replace(plain(activation="gelu"), name="<other>"))


def test_plain_values_are_complete_and_come_back_from_a_file(found, tmp_path):
    path = tmp_path / "found.json"
    files.write(path, "comparison", found.as_dict())
    content = files.read(path, "comparison")
    for key, value in json.loads(json.dumps(found.as_dict())).items():
        assert content[key] == value
    assert set(vars(found)) <= set(content)
    assert content["example"]["sizes"]["layers"] == 1


def test_choices_are_rows_under_the_names_of_the_backends(found):
    row = next(one for one in found.choice_rows() if one["choice"] == "activation")
    assert (row["paper"], row["plain"], row["<other>"]) == ("relu", "relu", "gelu")
    assert row["differs"]
    assert row["clause"] == "feed_forward.activation"


def test_steps_are_rows_with_the_difference_from_the_first(found):
    rows = {one["step"]: one["<other>"] for one in found.step_rows()}
    assert rows["source_embedding"] == 0.0
    assert rows["result"] > 1e-3


def test_a_notebook_shows_tables_and_the_explanation_as_text(found):
    html = found._repr_html_()
    page = ElementTree.fromstring(f"<div>{html}</div>")
    texts = ["".join(one.itertext()) for one in page.iter("td")]
    assert "activation" in texts
    assert "<other>" in "".join(page.itertext())
    assert "activation relu -> gelu" in html.replace("&gt;", ">")


def test_a_notebook_shows_what_could_not_be_compared():
    low = part_of(plain(), "encoder")
    low = replace(low, limits=replace(low.limits, precisions=("bfloat16",)), name="low")
    html = believed(plain(), low)._repr_html_()
    assert "low was not compared" in html
