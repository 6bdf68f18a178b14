"""Settings whose fields are single letters, one of which names settings elsewhere."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited
from plain_gpt import PLAIN_GPT

FORMULA = "language_model.formula"
SOURCE = edited(
    PLAIN_GPT,
    ("import torch\n", "from dataclasses import dataclass\n\nimport torch\n"),
    ("vocab_size, width, heads, layers, context):", "config):"),
    ("nn.Embedding(vocab_size, width), nn", "nn.Embedding(config.V, config.C), nn"),
    ("nn.Embedding(context, width)", "nn.Embedding(config.block_size, config.C)"),
    (
        "Block(width, heads) for _ in range(layers)",
        "Block(config.C, config.h) for _ in range(config.L)",
    ),
    (
        "nn.LayerNorm(width), nn.Linear(width, vocab_size)\n",
        "nn.LayerNorm(config.C), None\n        self.head = nn.Linear(config.C, config.V)\n",
    ),
)
FIELDS = """

@dataclass
class GPTConfig:
    V: int
    block_size: int
    C: int
    h: int
    L: int
"""


def test_field_that_is_a_number_gets_no_settings(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", SOURCE + FIELDS)
    assert "C=sizes.d_model" in "\n".join(backend.understood)  # type: ignore[attr-defined]
    assert not broken(backend, FORMULA)


@pytest.mark.proof
def test_mistakes_next_to_fields_of_one_letter_are_no_pass(tmp_path: Path) -> None:
    source = SOURCE + FIELDS
    assert asked_or_broken(tmp_path, "GPT", source, ".triu(1)", ".triu(2)", FORMULA)


def test_words_of_two_widths_are_that_of_the_model(tmp_path: Path) -> None:
    source = edited(SOURCE + FIELDS, ("    C: int", "    emb_hidden_dim: int"))
    source = source.replace("config.C", "config.emb_hidden_dim")
    backend = adapted(tmp_path, "GPT", source)
    said = "\n".join(backend.understood)  # type: ignore[attr-defined]
    assert "emb_hidden_dim=sizes.d_model" in said
