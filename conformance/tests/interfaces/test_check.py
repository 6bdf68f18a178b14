"""`attentest check`, as a user types it."""

import json

import jsonschema
import pytest
from click.testing import CliRunner, Result
from folders import SUPPORT

from attentest.interfaces.cli.main import main
from attentest.results import stream

WILD = SUPPORT / "wild"
FORMULA = ("--clause", "attention.formula")


def check(*words: str) -> Result:
    return CliRunner().invoke(main, ["check", *words])


def test_sound_code_is_told_what_was_understood_and_exits_with_0():
    result = check(f"{WILD}/attention.py:sdpa", *FORMULA)
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    read = said.index("mask=attention_mask); the float 1.0 may be attended")
    assert read < said.index("1 of 1 judged clauses conform, of 1 in all (1 pass)")


def test_a_mistake_is_told_in_full_and_exits_with_1():
    target = f"{WILD}/broken.py:attention_without_scale"
    result = check(target, "--as", "attention", *FORMULA, "--full")
    assert result.exit_code == 1
    labels = ["inferred:", "demands:", "found:", "to reproduce:", "likely cause:", "0 of 1 judged"]
    places = [result.output.index(word) for word in labels]
    assert places == sorted(places)


def test_likely_causes_are_not_searched_where_none_are_wanted():
    target = f"{WILD}/broken.py:attention_without_scale"
    result = check(target, "--as", "attention", *FORMULA, "--no-diagnose")
    assert result.exit_code == 1
    assert "breaks attention.formula" in result.output
    assert "likely cause" not in result.output
    assert "known mistake" not in result.output


def test_a_file_of_the_users_with_a_neighbour_is_judged_where_it_lies(tmp_path, monkeypatch):
    (tmp_path / "helper.py").write_text("def scale(x):\n    return x.size(-1) ** -0.5\n")
    (tmp_path / "my.py").write_text(
        "from helper import scale\n\n"
        "def attend(q, k, v, m=None):\n"
        "    s = q @ k.mT * scale(q)\n"
        "    return (s if m is None else s.masked_fill(~m, -1e30)).softmax(-1) @ v\n"
    )
    monkeypatch.chdir(tmp_path)
    result = check("my.py", *FORMULA)
    assert result.exit_code == 0, result.output
    assert "understood: attend called (query=q, key=k, value=v, mask=m)" in result.output
    assert check("my:attend", *FORMULA).exit_code == 0
    assert sorted(path.name for path in tmp_path.glob("*.py")) == ["helper.py", "my.py"]


def test_user_settings_reach_the_worker():
    result = check(
        f"{WILD}/broken.py:attention_without_scale",
        *("--as", "attention", "--argument", "mask=mask", "--set", "mask=blocks"),
        *("--give", "dropout=None", "--choice", "mask_fill=-1e9", *FORMULA, "--full"),
    )
    assert "as you say" in result.output
    assert "dropout given as None" in result.output
    assert "mask_fill: -1e+09, as you say" in result.output


@pytest.mark.parametrize(
    ("words", "labels"),
    [
        (("my.py:a", "--as", "atention"), "did you mean attention"),
        (("my.py:a", "--set", "masks=keep"), "did you mean mask"),
        (("my.py:a", "--set", "mask=kept"), "did you mean keep"),
        (("my.py:a", "--argument", "mask"), "not of the form ROLE=NAME"),
        (("my.py:a", "--choice", "mask_fil=exact"), "did you mean mask_fill"),
        (("my.py:a", "--choice", "activation=tanh"), "relu, gelu, gelu-tanh, gelu-sigmoid, silu"),
        (("nobody",), "There is no backend named 'nobody'"),
        (("my.py:a", "--as", "model", *FORMULA), "No clause is left"),
    ],
)
def test_a_usage_error_says_what_there_is_and_exits_with_2(words, labels):
    result = check(*words)
    assert result.exit_code == 2, result.output
    assert labels in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("target", "labels"),
    [
        ("nowhere.py:attention", "there is no file nowhere.py"),
        (f"{WILD}/attention.py:atend", "did you mean attend"),
        (f"{WILD}/uncovered.py:ScaledInput", "--as positional_encoding"),
    ],
)
def test_code_that_cannot_be_read_exits_with_3(target, labels):
    result = check(target, *FORMULA)
    assert result.exit_code == 3, result.output
    assert labels in result.output
    assert "Traceback" not in result.output


def test_code_that_is_not_covered_is_one_question():
    result = check(f"{WILD}/uncovered.py:RMSNorm", "--as", "layer_norm")
    assert result.exit_code == 3, result.output
    assert "it is an RMS norm" in result.output
    assert "violation" not in result.output
    judged = check(
        *(f"{WILD}/uncovered.py:RMSNorm", "--as", "layer_norm", "--anyway"),
        *("--clause", "layer_norm.formula"),
    )
    assert judged.exit_code == 1


def test_strict_judges_assumptions_by_the_paper():
    words = (f"{WILD}/parts.py:TokenEmbedding", "--clause", "embedding.scale")
    assumed = check(*words)
    assert assumed.exit_code == 0
    assert assumed.output.startswith("understood: ")
    assert "\nassumed embedding_scale=none" in assumed.output
    assert check(*words, "--strict").exit_code == 1


def test_the_parameter_map_can_be_corrected():
    result = check(
        *(f"{WILD}/parts.py:FeedForward", "--clause", "feed_forward.formula"),
        *("--parameter", "inner=outer", "--parameter", "outer=inner"),
    )
    assert result.exit_code == 1
    assert "weights outer, inner" in result.output


def test_the_stream_holds_how_the_code_was_read(tmp_path):
    file = tmp_path / "out.jsonl"
    target = f"{WILD}/attention.py:attention"
    assert check(target, *FORMULA, "--set", "mask=keep", "--json", str(file)).exit_code == 0
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        jsonschema.validate(line, stream.schema())
    assert lines[0]["plan"]["reading"] == {"mask": "keep"}
    assert "attention is judged as attention" in lines[1]["understood"]


def test_a_backend_is_judged_as_it_is():
    result = check(f"{WILD.parent}/miniatures.py:good", *FORMULA)
    assert result.exit_code == 0, result.output
    assert "understood:" not in result.output


def test_a_verdict_on_nothing_is_no_success():
    target = f"{WILD}/multi_head_attention.py:Attention"
    result = check(target, "--clause", "multi_head_attention.masked-keys-ignored")
    said = " ".join(result.output.split())
    assert "0 of 0 judged clauses conform, of 1 in all (1 absent)" in said
    assert "NO NUMBERS WERE COMPARED" in said
    assert result.exit_code == 3
