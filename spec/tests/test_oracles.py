"""The table of oracles, the signatures in it, and that none of them needs torch."""

import inspect
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from attentest_spec.choices import CHOICES
from attentest_spec.clauses import Clause, chapter_text, parse
from attentest_spec.components import COMPONENTS
from attentest_spec.oracles import METHODS, ORACLES
from attentest_spec.parameters import draw
from attentest_spec.setting import Setting
from attentest_spec.sizes import Sizes

CHAPTERS = ("feed_forward", "residual", "encoder", "decoder", "generator", "model")

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # an import of it raises ImportError
import attentest_spec
from attentest_spec.oracles import METHODS, ORACLES
assert list(ORACLES) == list(attentest_spec.COMPONENTS) and len(METHODS) == 2
assert not [name for name in sys.modules if name.split(".")[0] in ("attentest", "scipy")]
"""


def of_chapter(chapter: str) -> list[Clause]:
    """Read the clauses of one chapter."""
    return parse(chapter_text(chapter), chapter)


def test_every_component_has_an_oracle_and_nothing_else_has() -> None:
    assert list(ORACLES) == list(COMPONENTS)


def test_every_method_of_the_model_has_an_oracle() -> None:
    assert tuple(METHODS) == COMPONENTS["model"].methods


@pytest.mark.parametrize("name", list(COMPONENTS))
def test_an_oracle_takes_the_setting_and_then_the_inputs_of_its_component(name: str) -> None:
    parameters = list(inspect.signature(ORACLES[name]).parameters)
    assert parameters == ["given", *COMPONENTS[name].inputs, *COMPONENTS[name].more]


def test_oracles_need_no_torch() -> None:
    # -S leaves out the hooks of editable installs and with them whatever those import by
    # themselves; the paths are handed over instead.
    code = f"import sys; sys.path[:] = {sys.path!r}\n{WITHOUT_TORCH}"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("component", ["feed_forward", "encoder", "decoder", "generator"])
def test_float64_stays_float64(rng: np.random.Generator, component: str) -> None:
    sizes = Sizes(d_model=6, heads=2, d_ff=7, layers=2)
    given = Setting(sizes, parameters=draw(component, sizes, Setting().choices, rng))
    inputs = [rng.normal(size=(2, 5, 6))] + [rng.normal(size=(2, 3, 6))] * (component == "decoder")
    assert ORACLES[component](given, *inputs).dtype == np.float64


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_has_its_parts_and_clauses_for_each_of_its_components(chapter: str) -> None:
    text = chapter_text(chapter)
    assert all(part in text for part in ("$$", "**Call.**", "**By hand.**", "## Clauses"))
    judged = {clause.component for clause in of_chapter(chapter)}
    assert judged == {name for name, one in COMPONENTS.items() if one.chapter == chapter}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_choice_is_judged_by_the_one_clause_it_names(chapter: str) -> None:
    named = {one.clause: name for name, one in CHOICES.items()}
    found = {clause.slug: clause.choice for clause in of_chapter(chapter) if clause.choice}
    assert found == {slug: name for slug, name in named.items() if slug.startswith(chapter + ".")}


def test_no_two_clauses_say_the_same() -> None:
    texts = Counter(
        text
        for chapter in CHAPTERS
        for clause in of_chapter(chapter)
        for text in (clause.slug, f"{clause.component}: {clause.text}")
    )
    assert [text for text, times in texts.items() if times > 1] == []


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_clause_says_must_or_should_and_not_both(chapter: str) -> None:
    for clause in of_chapter(chapter):
        assert not ("MUST" in clause.text and "SHOULD" in clause.text), clause.slug
        assert clause.text.endswith("."), clause.slug
