"""Whole models that take a word, which the classes of their parts say."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken, edited

SOURCE = (SUPPORT / "wild_models" / "one_file.py").read_text(encoding="utf-8")
PLAIN = edited(
    SOURCE,
    ("        n_layers=2,\n", "        act_kind,\n        n_layers=2,\n"),
    (
        "        hidden_size=128,\n        n_heads=4,\n        inner_size=256,\n",
        "        hidden_size,\n        n_heads,\n        inner_size,\n",
    ),
    (
        "rest = hidden_size, n_heads, inner_size, dropout",
        "rest = hidden_size, n_heads, inner_size, act_kind, dropout",
    ),
    (
        "def __init__(self, hidden, heads, inner, drop):",
        "def __init__(self, hidden, heads, inner, act_kind, drop):",
    ),
    ("Feed(hidden, inner, drop)", "Feed(hidden, inner, act_kind, drop)"),
    (
        "def __init__(self, hidden, inner, drop):",
        "def __init__(self, hidden, inner, act_kind, drop):",
    ),
)


def with_part(kind: str, chosen: str, table: str = "") -> str:
    """Return the model whose networks take the word `kind` and have what is `chosen` by it."""
    return edited(
        PLAIN,
        (
            "inner, act_kind, drop):\n        super().__init__(\n            "
            "nn.Linear(hidden, inner), nn.ReLU()",
            f"inner, act_kind{kind}, drop=0.1):\n        super().__init__(\n            "
            f"nn.Linear(hidden, inner), {chosen}",
        ),
        ("class Feed(", f"{table}class Feed("),
    )


KEYS = 'ACTS = {"gelu": nn.GELU, "relu": nn.ReLU}\n\n\n'
COMPARED = 'nn.ReLU() if act_kind.lower() == "rectified" else nn.Hardtanh()'


@pytest.mark.proof
@pytest.mark.parametrize(
    ("source", "word"),
    [
        (with_part("", "ACTS[act_kind]()", KEYS), "relu"),
        (with_part('="rectified"', 'nn.ReLU() if act_kind[0] == "r" else None'), "rectified"),
        (with_part("", COMPARED), "rectified"),
    ],
    ids=["keys", "default", "compared"],
)
def test_word_that_parts_say_is_given(source: str, word: str, tmp_path: Path) -> None:
    backend = adapted(tmp_path, "TransformerMT", source)
    assert any(f"act_kind='{word}'" in one for one in backend.assumed)
    assert not broken(backend, "model.formula")


@pytest.mark.proof
def test_word_that_parts_say_excuses_no_mistake(tmp_path: Path) -> None:
    source = with_part("", "ACTS[act_kind]()", KEYS)
    mistaken = edited(source, ("/ math.sqrt(hidden // self.heads)", ""))
    assert broken(adapted(tmp_path, "TransformerMT", mistaken), "model.formula")
