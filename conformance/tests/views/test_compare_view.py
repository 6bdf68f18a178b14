"""The terminal view of a comparison: no cell is broken in two, at any width."""

import io
import re
from dataclasses import replace

import pytest
from compared import ONE_LAYER, known, part_of, plain, trusted
from rich.console import Console

from attentest.results.wording import PAPER
from attentest.studies.comparison import Comparison
from attentest.studies.comparison.compare import side_by_side
from attentest.studies.comparison.words import in_short
from attentest.views.comparison import show

OPTIONS = [
    {},
    {"positional_encoding": "doubled-exponent", "output": "log-probabilities"},
    {"norm_epsilon_place": "added-to-deviation"},
    {"embedding_scale": "none"},
    {"activation": "gelu", "tying": "target-and-output"},
    {"final_norm": "present"},
]


@pytest.fixture(scope="module")
def many() -> Comparison:
    backends = {f"backend_{n}": trusted(plain(**options)) for n, options in enumerate(OPTIONS)}
    return side_by_side(backends, ONE_LAYER)


def shown(found, columns: int) -> list[str]:
    console = Console(file=io.StringIO(), width=columns)
    show(console, found)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("columns", [60, 80, 100, 160, 250])
def test_every_line_fits_and_no_option_is_broken(many, columns):
    lines = shown(many, columns)
    assert max(map(len, lines)) <= columns
    until = next(n for n, line in enumerate(lines) if line.startswith("* the backends"))
    words = set(re.split(r"[-,\s]+", "\n".join(lines[:until])))
    for whole in ("probabilities", "interleaved", "unspecified", "deviation", "backend_5"):
        assert whole in words


@pytest.mark.parametrize("columns", [60, 80, 250])
def test_every_backend_and_every_pair_is_shown(many, columns):
    text = " ".join(" ".join(shown(many, columns)).split())
    for one in many.explanations:
        begun = f"{one.other} against {one.first}: "
        assert text.count(begun) == 1
    for step in ("source_embedding", "result"):
        assert step in text


def test_where_there_is_room_a_backend_is_a_column(many):
    heading = shown(many, 250)[0].split()
    assert heading == ["choice", *PAPER.split(), *many.backends]


@pytest.mark.parametrize("columns", [60, 160])
def test_options_of_the_paper_are_not_headed_as_the_target_paper(columns):
    found = side_by_side({"paper": trusted(plain()), "other": trusted(plain())}, ONE_LAYER)
    (heading, *_), lines = shown(found, columns), " ".join(shown(found, columns))
    assert heading.split().count("paper") == (1 if columns == 160 else 0)
    assert "paper, paper" not in lines
    assert "the paper, all" not in lines
    assert PAPER.split()[0] in lines
    headings = re.findall("<th[^>]*>(.*?)</th>", found._repr_html_())
    assert headings.count("paper") == 1


def test_choices_that_no_backend_has_are_counted_and_not_listed():
    declared = {one: {"activation": one} for one in ("relu", "gelu")}
    small = {
        name: known(replace(part_of(plain(**one), "feed_forward"), choices=one))
        for name, one in declared.items()
    }
    found = side_by_side(small, ONE_LAYER)
    lines = shown(found, 80)
    listed = lines[: next(n for n, line in enumerate(lines) if line.startswith("* the"))]
    assert any(line.startswith("*  activation") for line in listed)
    assert not any("tying" in line or "router_scores" in line for line in listed)
    number = len(found.choices) - sum(one.is_known for one in found.choices)
    assert f"{number} choices that none of them declares or shows are not listed." in lines
    assert "router_scores" not in found._repr_html_()


def test_a_pair_in_short_tells_its_choices(many):
    one = next(e for e in many.explanations if (e.first, e.other) == ("backend_0", "backend_4"))
    assert "activation relu -> gelu" in in_short(one)
    assert f"from {one.parting.step} on" in in_short(one)


def test_one_that_is_not_explained_is_not_short_of_its_step():
    from attentest.faults import fault_of, inject

    wrong = inject(fault_of("feed_forward.no-activation"), "plain")
    found = side_by_side(
        {"a": trusted(plain()), "b": trusted(plain()), "wrong": trusted(wrong)}, ONE_LAYER
    )
    text = " ".join(" ".join(shown(found, 80)).split())
    assert text.count("NOT EXPLAINED") == 2
    assert "wrong is not what the reference does under the same choices" in text
    assert "encoder.layers.0.feed_forward" in text
