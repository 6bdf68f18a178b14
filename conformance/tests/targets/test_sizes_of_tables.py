"""Settings that give the size of an embedding beside the width: the rows of its table."""

from pathlib import Path

from mistaken_code import adapted, asked_or_broken, broken, edited
from plain_gpt import PLAIN_GPT

PADDED = edited(
    PLAIN_GPT,
    (
        "vocab_size, width, heads, layers, context",
        "vocab_size, embedding_size, width, heads, layers, context",
    ),
    (
        "self.table, self.places = nn.Embedding(vocab_size, width)",
        "self.table, self.places = nn.Embedding(embedding_size or vocab_size, width)",
    ),
    ("nn.Linear(width, vocab_size)", "nn.Linear(width, embedding_size or vocab_size)"),
)
"""A model that pads its vocabulary to `embedding_size` rows."""


def test_size_of_an_embedding_beside_a_width_is_the_rows_of_its_table(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", PADDED)
    assert [one for one in backend.assumed if "embedding_size is the number of rows" in one]
    assert not broken(backend, "language_model.formula")


def test_mistake_in_a_model_with_a_padded_vocabulary_does_not_pass(tmp_path: Path) -> None:
    mistake = ("x + self.attend(self.one(x))", "self.attend(self.one(x))")
    assert asked_or_broken(tmp_path, "GPT", PADDED, *mistake, "language_model.formula")
