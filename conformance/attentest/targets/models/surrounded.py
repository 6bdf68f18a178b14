"""Encoder and decoder stacks that take vectors, between embeddings and a generator of their own.

The class needs nothing else of the suite: reproductions and written adapters contain its source.
"""

import inspect
from typing import Any

from torch import Tensor, nn

from attentest.targets.models.arguments import sides_of


class Surrounded(nn.Module):
    """The stacks `core`, called with token ids: its vectors are rows of tables.

    `source` and `target` are the arguments of `core` that get vectors; all others are handed on.
    The embeddings have no scale and no positions, and the generator has no bias.
    """

    def __init__(
        self, core: nn.Module, vocabularies: tuple[int, int], width: int, source: str, target: str
    ) -> None:
        super().__init__()
        self.core = core
        self.tokens = source, target
        self.source_embedding = nn.Embedding(vocabularies[0], width)
        self.target_embedding = nn.Embedding(vocabularies[1], width)
        self.generator = nn.Linear(width, vocabularies[1], bias=False)

    def forward(self, **given: Any) -> Tensor:
        """Return the logits of the target's steps."""
        source, target = self.tokens
        given[source] = self.source_embedding(given[source])
        given[target] = self.target_embedding(given[target])
        states = self.core(**given)
        logits: Tensor = self.generator(states[0] if isinstance(states, tuple) else states)
        return logits


SURROUNDED_SOURCE = "\n".join(
    ["from typing import Any", "", "from torch import Tensor, nn", "", "", ""]
) + inspect.getsource(Surrounded)
"""The class as code of its own."""

OUTSIDE = ("positional_encoding", "embedding_scale", "output", "generator_bias", "tying")
"""Choices that say nothing of the stacks."""


def signature_of(model: nn.Module) -> inspect.Signature:
    """Return the signature of a call of `model`, or of the stacks in it."""
    called = model.core if isinstance(model, Surrounded) else model
    return inspect.signature(called.forward)


def surrounded(expression: str, core: nn.Module) -> str:
    """Return the expression that puts what `expression` builds between tables and a generator."""
    names = sides_of(inspect.signature(core.forward))
    if len(names) < 2:
        return ""
    return (
        f"Surrounded({expression}, (sizes.source_vocabulary, sizes.target_vocabulary), "
        f'sizes.d_model, "{names[0]}", "{names[1]}")'
    )
