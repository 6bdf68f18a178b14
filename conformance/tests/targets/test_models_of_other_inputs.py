"""Whole models that take sounds, or add biases by buckets: one question that says so."""

from pathlib import Path

from folders import SUPPORT
from mistaken_code import asked, edited

PLAIN = (SUPPORT / "wild_models" / "plain_ids.py").read_text(encoding="utf-8")
SPEECH = edited(
    PLAIN,
    ("def forward(self, src_ids, tgt_ids)", "def forward(self, speech, tgt_ids)"),
    (
        "        memory = self.encoder(src_ids)\n",
        "        src_ids = self.front(speech.transpose(1, 2)).transpose(1, 2)[..., 0].long()\n"
        "        memory = self.encoder(src_ids)\n",
    ),
    (
        "        self.head = ",
        "        self.front = nn.Conv1d(d_model, d_model, 3, 2)\n        self.head = ",
    ),
)
BUCKETS = edited(
    PLAIN,
    (
        "        self.norm = nn.LayerNorm(d_model)\n",
        "        self.norm, self.biases = nn.LayerNorm(d_model), nn.Embedding(32, n_heads)\n",
    ),
)


def question(folder: Path, source: str) -> str:
    (folder / "own.py").write_text(source)
    return asked(f"{folder / 'own.py'}:Translator")


def test_model_of_sounds_is_a_question_that_names_its_input(tmp_path: Path) -> None:
    assert "takes speech, which is a sound or an image by its name" in question(tmp_path, SPEECH)


def test_model_with_biases_of_heads_is_a_question_that_names_the_class(tmp_path: Path) -> None:
    said = question(tmp_path, BUCKETS)
    assert said.startswith("Translator is not judged as model")
    assert "name the class of its attention, Side" in said
