"""A mask that is turned around before a function of torch takes it: the line that turns it."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attentest.analysis.lines.locate import locate
from attentest.harness.subject import Subject
from attentest.judging.bench import Bench
from attentest_spec import Choices, Sizes
from attentest_spec.parameters import draw
from attentest_spec.torch import Recipe, TorchBackend

PARAMETERS = {f"{one}.weight": f"{one}.weight" for one in ("query", "key", "value", "output")}


class Right(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        for name in ("query", "key", "value", "output"):
            self.register_module(name, nn.Linear(width, width, bias=False))

    def kept(self, mask: Tensor) -> Tensor:
        return mask

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        keep = self.kept(torch.ones(1, 1, 3, 3).bool() if mask is None else mask)
        q, k, v = self.query(query), self.key(key), self.value(value)
        found = nn.functional.scaled_dot_product_attention(
            self.split(q), self.split(k), self.split(v), attn_mask=keep
        )
        return self.output(found.transpose(1, 2).flatten(2))


class Turned(Right):
    def kept(self, mask: Tensor) -> Tensor:
        return ~mask


def asked(kind: type[Right], mask: np.ndarray | None) -> Subject:
    """Return a subject that was asked for attention under a mask."""
    recipe = Recipe(lambda sizes: kind(sizes.d_model, sizes.heads), parameters=PARAMETERS)
    backend = TorchBackend(name="own", title="own", recipes={"multi_head_attention": recipe})
    subject = Bench(backend).subject()
    source, sizes = np.random.default_rng(0), Sizes(d_model=4, heads=2)
    part = subject.part("multi_head_attention", sizes)
    part.load(draw("multi_head_attention", sizes, Choices(), source))
    rows = source.normal(size=(1, 3, 4))
    part(rows, rows, rows, mask)
    return subject


@pytest.mark.parametrize("mask", [None, np.array([[[[True, True, False]]]])])
def test_line_that_turns_the_mask_is_named(mask: np.ndarray | None) -> None:
    subject = asked(Turned, mask)
    found = locate(subject, subject.trace, {})
    assert found
    assert found.code == "return ~mask"
