"""Whole models whose constructor demands a multiple of a width, or leaves one open."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, edited
from test_layouts_and_batches_of_models import BACK, FORMULA, MODEL

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

HEAD = "def __init__(self, src_vocab, tgt_vocab, d_model, heads, layers, d_ff, max_len, pad_id):\n"
DEMANDING = edited(
    MODEL, BACK, (HEAD, f"{HEAD}        assert d_ff % d_model == 0, 'd_ff must be divisible'\n")
)
OPEN = edited(
    MODEL,
    BACK,
    (
        "src_vocab, tgt_vocab, d_model, heads, layers, d_ff, max_len, pad_id):\n",
        "n_vocab_source, n_vocab_dest, d_model, heads, layers, d_ff, max_len, pad_id, "
        "d_vocab=None):\n        d_vocab = d_vocab or d_model\n",
    ),
    ("nn.Embedding(src_vocab, d_model)", "nn.Embedding(n_vocab_source, d_vocab)"),
    ("nn.Embedding(tgt_vocab, d_model)", "nn.Embedding(n_vocab_dest, d_vocab)"),
    ("nn.Linear(d_model, tgt_vocab)", "nn.Linear(d_model, n_vocab_dest)"),
)


@pytest.mark.parametrize(
    ("source", "built"),
    [
        (DEMANDING, "d_ff=4 * sizes.d_model"),
        (OPEN, "n_vocab_source=sizes.source_vocabulary, n_vocab_dest=sizes.target_vocabulary"),
    ],
)
def test_model_is_built_with_the_sizes_that_it_takes(
    source: str, built: str, tmp_path: Path
) -> None:
    backend = adapted(tmp_path, "Translator", source)
    words = "\n".join(backend.understood)  # type: ignore[attr-defined]
    assert built in words
    assert "d_vocab=" not in words


@pytest.mark.proof
@pytest.mark.parametrize("source", [DEMANDING, OPEN])
def test_mistakes_of_such_models_are_detected(source: str, tmp_path: Path) -> None:
    assert asked_or_broken(tmp_path, "Translator", source, ".triu(1)", ".triu(2)", FORMULA)
