"""Arguments whose names end with the axes of their arrays, and attributes that cannot be copied."""

from torch import Tensor, nn
from torch.nn import functional

from attentest.targets.adapt.adaptation import adapt
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.reading import Reading


class Attention(nn.Module):
    def __init__(self, embedding_size: int, num_heads: int, head_dim: int):
        super().__init__()
        self.head_dim = head_dim
        self.split = staticmethod(lambda x: x.unflatten(-1, (num_heads, head_dim)).transpose(1, 2))
        width = num_heads * head_dim
        maps = (nn.Linear(embedding_size, width, bias=False) for _ in range(3))
        self.q_projection, self.k_projection, self.v_projection = maps
        self.out_projection = nn.Linear(width, embedding_size, bias=False)
        nn.init.zeros_(self.out_projection.weight)

    def forward(self, x_BSE: Tensor, rope: nn.Module | None = None) -> Tensor:  # noqa: N803
        queries = self.split(self.q_projection(x_BSE))
        keys = self.split(self.k_projection(x_BSE))
        if rope is not None:
            queries, keys = rope(queries), rope(keys)
        values = self.split(self.v_projection(x_BSE))
        mixed = functional.scaled_dot_product_attention(queries, keys, values)
        return self.out_projection(mixed.transpose(1, 2).flatten(2))


def test_axes_at_the_end_of_a_name_are_no_part_of_it():
    assert squashed("x_BSE") == "x"
    assert squashed("hidden_states_BTD") == "hiddenstates"
    assert squashed("mask_BL2") == "mask"


def test_capitals_that_are_no_axes_are_kept():
    assert squashed("W_QKV") == "wqkv"
    assert squashed("to_QKV") == "toqkv"
    assert squashed("W_O") == "wo"
    assert squashed("MAX_LEN") == "maxlen"


def test_attention_of_an_argument_with_axes_that_holds_a_static_method_is_read():
    backend = adapt(Attention, Reading())
    assert list(backend.components) == ["multi_head_attention"]
