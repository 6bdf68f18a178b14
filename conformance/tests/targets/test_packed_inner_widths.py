"""Inner widths of decoder-only models that are rounded up, where two matrices are packed."""

from mistaken_code import adapted, broken, edited
from plain_gpt import PLAIN_GPT

CODE = edited(
    PLAIN_GPT,
    (
        "self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)",
        "inner = 16 * ((8 * width // 3 + 15) // 16)\n"
        "        self.both, self.down = nn.Linear(width, 2 * inner), nn.Linear(inner, width)",
    ),
    (
        "return x + self.down(F.relu(self.up(self.two(x))))",
        "gate, up = self.both(self.two(x)).chunk(2, -1)\n"
        "        return x + self.down(F.silu(gate) * up)",
    ),
)
FORMULA = "language_model.formula"


def test_rounded_width_of_packed_matrices_is_measured(tmp_path):
    backend = adapted(tmp_path, "GPT", CODE)
    assert backend.limits.inner_multiple == 16
    assert broken(backend, FORMULA) == []


def test_mistake_next_to_a_rounded_width_is_reported(tmp_path):
    wrong = edited(CODE, ("/ q.shape[-1] ** 0.5", "/ width**0.5"))
    assert broken(adapted(tmp_path, "GPT", wrong), FORMULA)
