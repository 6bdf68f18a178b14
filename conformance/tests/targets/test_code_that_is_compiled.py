"""Code that asks torch to compile: where nothing is compiled, the first screen says so."""

from pathlib import Path

import pytest
from mistaken_code import adapted

CODE = """
import torch


def attention(query, key, value, mask=None):
    scores = query @ key.mT / key.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(-1) @ value


def fast(*inputs):
    return torch.compile(attention)(*inputs)
"""


@pytest.mark.parametrize(("value", "is_said"), [("1", True), ("0", False)])
def test_code_that_is_not_compiled_is_an_assumption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, is_said: bool
) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", value)
    backend = adapted(tmp_path, "attention", CODE)
    assert any("torch.compile changes no number" in one for one in backend.assumed) is is_said
