"""The lines of wrong steps with a cache."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import edited
from proof import share

import attentest
from attentest.analysis.cached_steps import line_of_cache
from attentest.harness.subject import Subject
from attentest.judging.bench import Bench
from attentest.judging.judge import judge

WILD = SUPPORT / "wild_cached_models"
PAST = "0 if past_key_values is None else past_key_values[0][0].size(2)"

MISTAKES = [
    ("nano_past.py:GPT", f"start = {PAST}", "start = 0", "pos = torch.arange(start"),
    ("nano_past.py:GPT", "[total - t : total]", "[:t]", "keep = torch.ones"),
    (
        "nano_past.py:GPT",
        "att = att.masked",
        "att = att if layer_past else att.masked",
        "y = F.softmax(att",
    ),
    ("nano_past.py:GPT", "past_key_values[i]", "past_key_values[0]", "x, present = block(x"),
    ("llama_objects.py:LlamaModel", ".tril(offset)", ".tril()", "mask = torch.ones(t"),
    ("static_buffer.py:DecoderLM", "key > query", "key > query - start_pos", "weights = scores"),
    (
        "static_buffer.py:DecoderLM",
        "arange(start_pos, start_pos + ids",
        "arange(0, ids",
        "places = torch.arange(0",
    ),
    ("outputs_past.py:TinyForCausalLM", ".tril()[past:]", ".tril()[:t]", "mask = torch.ones(past"),
    ("lists.py:LM", "triu(before + 1)", "triu(1)", "q.transpose(1, 2), k.transpose(1, 2)"),
]
"""A model, an edit that injects a mistake, and how the line begins that is named."""


@share(2, rest=1)
@pytest.mark.parametrize(("target", "right", "wrong", "line"), MISTAKES)
def test_line_of_a_wrong_step_is_the_first_that_is_made_of_right_values(
    target: str, right: str, wrong: str, line: str, tmp_path: Path
) -> None:
    file, _, name = target.partition(":")
    (tmp_path / file).write_text(edited((WILD / file).read_text(), (right, wrong)))
    backend = attentest.adapted(f"{tmp_path / file}:{name}")
    found = line_of_cache(Subject(backend), "cached_language_model")
    assert found is not None
    assert found.code.startswith(line), found
    if found.confirmed:
        assert wrong in linked(found.file, found.line)


def linked(file: str, line: int) -> str:
    """Return a line of a file, with the next one: a statement may be longer."""
    return "\n".join(Path(file).read_text().splitlines()[line - 1 : line + 1])


@share(2, rest=1)
@pytest.mark.parametrize("target", sorted({one for one, *_ in MISTAKES}))
def test_right_steps_have_no_line(target: str) -> None:
    subject = Subject(attentest.adapted(str(WILD / target)))
    assert line_of_cache(subject, "cached_language_model") is None


@pytest.mark.proof
def test_violation_of_a_cache_names_the_line(tmp_path: Path) -> None:
    code = edited((WILD / "nano_past.py").read_text(), (f"start = {PAST}", "start = 0"))
    (tmp_path / "own.py").write_text(code)
    bench = Bench(attentest.adapted(f"{tmp_path / 'own.py'}:GPT"))
    verdict = judge(bench, "language_model.cached-formula")
    assert verdict.location is not None
    assert verdict.location.code.startswith("pos = torch.arange(start")
