"""Decoder-only models that repeat the heads of keys before they turn them by positions."""

from pathlib import Path

from folders import SUPPORT

from attentest.targets import file_modules
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.language_models.inference import Inferred, infer

TURNS = "        xq, xk = apply_rotary_emb(xq, xk, freqs_cos, freqs_sin)\n"
REPEATS = "        xk, xv = repeat_kv(xk, self.n_rep), repeat_kv(xv, self.n_rep)\n"
BACK = """

def apart(xq, xk, cosines, sines):
    turned, _ = apply_rotary_emb(xq, xk, cosines, sines)
    _, back = apply_rotary_emb(xq, xk, cosines, -sines)
    return turned, back
"""


def read(folder: Path, turns: str) -> Inferred:
    """Return a published model as it is read, with its keys repeated before `turns`."""
    source = (SUPPORT / "wild_language_models" / "llama_c.py").read_text(encoding="utf-8")
    assert TURNS + REPEATS in source
    path = folder / "own.py"
    source = source.replace(TURNS + REPEATS, REPEATS + turns) + BACK
    path.write_text(source, encoding="utf-8")
    return infer(file_modules.load(path).Transformer, "Transformer", Reading())


def test_keys_that_are_repeated_first_are_read(tmp_path: Path) -> None:
    found = read(tmp_path, TURNS)
    assert found.choices["attention_rotary"] == "query-and-key"
    assert found.choices["key_heads"] == "fewer"


def test_keys_that_are_repeated_first_and_turned_back_are_asked_about(tmp_path: Path) -> None:
    back = TURNS.replace(TURNS.strip(), "xq, xk = apart(xq, xk, freqs_cos, freqs_sin)")
    try:
        found = read(tmp_path, back)
    except Unclear:
        return
    assert found.mistake is not None
