"""Heads of an encoder whose names say that they are models are parts of it, and no questions."""

from user_files import write_files

from attentest.targets.adapt.parameters.layers import _by_number
from attentest.targets.adapt.parameters.units import Unit
from attentest.targets.members import members

CODE = """
    import torch
    from torch import nn


    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.net = nn.Sequential(
                nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width)
            )

        def forward(self, x):
            x = self.norm1(x + self.attention(x, x, x, need_weights=False)[0])
            return self.norm2(x + self.net(x))


    class MaskedLanguageModel(nn.Module):
        def __init__(self, hidden, vocab_size):
            super().__init__()
            self.linear = nn.Linear(hidden, vocab_size)

        def forward(self, x):
            return self.linear(x).log_softmax(-1)


    class Bert(nn.Module):
        def __init__(self, vocab_size, hidden, layers, heads, max_len):
            super().__init__()
            self.tokens = nn.Embedding(vocab_size, hidden)
            self.places = nn.Embedding(max_len, hidden)
            self.blocks = nn.ModuleList([Block(hidden, heads) for _ in range(layers)])
            self.head = MaskedLanguageModel(hidden, vocab_size)

        def forward(self, x):
            x = self.tokens(x) + self.places(torch.arange(x.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.head(x)
"""


def test_a_head_that_is_called_a_model_is_part_of_its_encoder(tmp_path):
    folder = write_files(tmp_path, heads=CODE)
    found = {one.name: one for one in members(str(folder / "heads.py"))}
    assert found["Bert"].component == "encoder"
    head = found["MaskedLanguageModel"]
    assert (head.component, head.inside) == ("", "Bert")


def named(*names: str) -> dict[Unit, str]:
    units = [Unit(one, "linear", f"{one}.weight", "", (4, 4), ()) for one in names]
    return dict(zip(units, names, strict=True))


def test_projections_of_two_attentions_have_numbers():
    names = named("W_q_2", "W_k_1", "W_q_1", "mha_layer_2.W_0", "mha_layer_1.W_0")
    groups = _by_number(list(names), names)
    held = {number: [one.path for one in group] for number, group in groups.items()}
    assert held == {
        "1": ["W_k_1", "W_q_1", "mha_layer_1.W_0"],
        "2": ["W_q_2", "mha_layer_2.W_0"],
    }


def test_a_name_without_a_number_leaves_projections_alone():
    names = named("W_q_1", "W_q_2", "output")
    assert _by_number(list(names), names) == {}


HEAD = (
    CODE.partition("    class Bert(nn.Module)")[0]
    + """
    class LanguageModel(nn.Module):
        def __init__(self, encoder, hidden, vocab_size):
            super().__init__()
            self.encoder = encoder
            self.linear = nn.Linear(hidden, vocab_size)

        def forward(self, x):
            return self.linear(self.encoder(x))
"""
)


def test_a_head_without_its_encoder_is_no_whole_model_and_one_that_holds_it_is(tmp_path):
    folder = write_files(tmp_path, alone=HEAD)
    found = {one.name: one.component for one in members(str(folder / "alone.py"))}
    assert found["MaskedLanguageModel"] == ""
    assert found["LanguageModel"] == "language_model"
