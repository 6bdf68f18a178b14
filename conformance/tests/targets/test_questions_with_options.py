"""An option that gives the right numbers is an assumption, or named; none excuses a mistake."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted
from proof import share

import attentest
from attentest.targets.adapt import Unclear

FILE = SUPPORT / "parts_with_questions.py"
TRIED = "with it the numbers are those of the reference (tried)"

ASKED = {
    "Mixer": ("--as multi_head_attention", {"component": "multi_head_attention"}),
    "Expand": ("--as feed_forward", {"component": "feed_forward"}),
    "AttentionWithPositions": ("--give offsets=None", {"given": {"offsets": None}}),
    "AttentionOverArea": ("--argument mask=area", {"arguments": {"mask": "area"}}),
    "AttentionToOther": (
        "--argument query=x --argument key=other",
        {"arguments": {"query": "x", "key": "other"}},
    ),
    "AttentionInTwoWays": ("--give fused=False", {"given": {"fused": False}}),
    "FeedForwardOfLetters": (
        "--argument d_model=a --argument d_ff=b",
        {"arguments": {"d_model": "a", "d_ff": "b"}},
    ),
    "DecoderLayerOfStates": (
        "--argument x=states --argument memory=facts",
        {"arguments": {"x": "states", "memory": "facts"}},
    ),
}


def question(folder: Path, name: str, right: str = "", wrong: str = "") -> str:
    source = FILE.read_text()
    mistaken = source.replace(right, wrong)
    assert not right or mistaken != source
    with pytest.raises(Unclear) as asked:
        adapted(folder, name, mistaken)
    return str(asked.value)


@share(2, rest=1)
@pytest.mark.parametrize("name", list(ASKED)[:3])
def test_question_names_the_option_that_was_tried(tmp_path: Path, name: str) -> None:
    options, reading = ASKED[name]
    said = question(tmp_path, name)
    assert f"{options} (in Python: " in said
    assert TRIED in said
    assert attentest.adapted(f"{FILE}:{name}", **reading).fits  # type: ignore[attr-defined]


@share(5, rest=1)
@pytest.mark.parametrize("name", list(ASKED)[3:])
def test_option_that_was_tried_is_an_assumption(tmp_path: Path, name: str) -> None:
    _, reading = ASKED[name]
    found = adapted(tmp_path, name, FILE.read_text())
    (said,) = [one for one in found.assumed if "which nothing says" in one]
    values = [f"{own}={value}" for own, value in reading.get("given", {}).items()]
    values += [f"{own} as {role}" for role, own in reading.get("arguments", {}).items()]
    assert f"assumed {', '.join(values)}, " in said
    assert found.fits


SCALE = (" / q.shape[-1] ** 0.5", "")
MISTAKES = [
    ("Mixer", *SCALE),
    ("Expand", "functional.relu(self.up(x))", "self.up(x)"),
    ("AttentionWithPositions", *SCALE),
    ("AttentionOverArea", *SCALE),
    ("AttentionOverArea", "self.run(x, x, area)", "self.run(x, x, None)"),
    ("AttentionToOther", *SCALE),
    ("AttentionToOther", "(self.v, y)", "(self.v, y.roll(1, 1))"),
    ("AttentionInTwoWays", *SCALE),
    ("FeedForwardOfLetters", "functional.relu(self.up(x))", "self.up(x)"),
    ("DecoderLayerOfStates", *SCALE),
]


@pytest.mark.proof
@share(12)
@pytest.mark.parametrize(("name", "right", "wrong"), MISTAKES)
def test_no_option_is_named_that_excuses_a_mistake(
    tmp_path: Path, name: str, right: str, wrong: str
) -> None:
    assert TRIED not in question(tmp_path, name, right, wrong)


@pytest.mark.exhaustive
def test_question_says_which_options_were_tried_in_vain(tmp_path: Path) -> None:
    said = question(tmp_path, "AttentionWithPositions", *SCALE)
    assert "none gives the numbers of the reference: " in said
    assert "--give offsets=None" in said


@pytest.mark.proof
def test_switch_with_a_mistake_in_one_way_is_left_to_the_user(tmp_path: Path) -> None:
    way = "x = x * 1.5 if self.fused else x\n        return self.run(x, x, mask)"
    source = FILE.read_text()
    head, tail = source.split("self.fused = fused")
    source = f"{head}self.fused = fused{tail.replace('return self.run(x, x, mask)', way, 1)}"
    with pytest.raises(Unclear, match=r"fused=False the numbers are .* fused=True they are not"):
        adapted(tmp_path, "AttentionInTwoWays", source)
