"""Whole models whose layers call a norm for query, key and value each."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, asked_or_broken, broken, edited

METHODS = (SUPPORT / "wild_models" / "by_methods.py").read_text(encoding="utf-8")
ONCE = "            x = self.norms[1](x + self.cross_attention(x, memory, memory, memory_mask))\n"
CODE = edited(
    METHODS,
    (
        "        x = self.norms[0](x + self.self_attention(x, x, x, mask))\n",
        "        norm = self.norms[0]\n"
        "        x = x + self.self_attention(norm(x), norm(x), norm(x), mask)\n",
    ),
    (
        ONCE,
        "            query = self.norms[1](x)\n"
        "            x = x + self.cross_attention(query, memory, memory, memory_mask)\n",
    ),
    (
        "self.norms[-1](x + self.feed_forward(x))",
        "x + self.feed_forward(self.norms[-1](x))",
    ),
)
SHARED = ("query = self.norms[1](x)", "query = self.norms[0](x)")
MEMORY = ("(query, memory, memory,", "(query, self.norms[1](memory), self.norms[1](memory),")


@pytest.mark.proof
def test_norm_that_is_called_for_query_key_and_value_is_one(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "build_transformer", CODE)
    assert backend.choices["norm_placement"] == "pre"
    assert not broken(backend, "model.formula", "model.parameter-gradient")


@pytest.mark.proof
@pytest.mark.parametrize("edit", [SHARED, MEMORY], ids=["shared", "memory"])
def test_mistakes_in_norms_that_are_called_often_are_detected(
    edit: tuple[str, str], tmp_path: Path
) -> None:
    assert asked_or_broken(tmp_path, "build_transformer", CODE, *edit, "model.formula")
