"""Heads of decoder-only models that are the embedding, or are not, against what words say."""

import pytest
from torch import nn

from attentest.targets.adapt.reading import Contrary, Reading
from attentest.targets.language_models.questions.tying import demand_tying


class Plain(nn.Module):
    """A small model of text."""

    def __init__(self, config: object = None) -> None:
        super().__init__()
        self.config = config


class Documented(Plain):
    """A small model of text with rotary positions, tied head."""


class Open(Plain):
    """A small model of text: the head is tied to the embedding if `share` is given."""


class Settings:
    """Settings of a model whose head is the embedding."""

    def __init__(self, tied: bool) -> None:
        self.tie_word_embeddings = tied


class Copied(Plain):
    """A model whose head is a copy of the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(9, 4), nn.Linear(4, 9, bias=False)
        self.head.weight = nn.Parameter(self.table.weight.clone())  # share


class CopiedBelow(Copied):
    """A model with the comment above."""

    def __init__(self) -> None:
        super().__init__()
        # weights are tied
        self.head.weight = nn.Parameter(self.table.weight.detach())


class CopiedOnLines(Copied):
    """A model with the comment behind the last line."""

    def __init__(self) -> None:
        super().__init__()
        self.head.weight = nn.Parameter(
            self.table.weight.detach(),
        )  # weight tying


class CopiedNumbers(Copied):
    """A model with the numbers of one in the other, under a comment of two lines."""

    def __init__(self) -> None:
        super().__init__()
        # The weights of the head and the table are shared,
        # which is a third of all parameters.
        self.head.weight.data = self.table.weight.data.clone()


class CopiedOpenly(Copied):
    """A model that says that they are two, and one with a condition."""

    def __init__(self, tied: bool = False) -> None:
        super().__init__()
        self.head.weight = nn.Parameter(self.table.weight.clone())  # not shared
        if tied:
            self.head.weight = self.table.weight  # tied


class Layered(Copied):
    """A model that shares another weight."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(4, 4), nn.Linear(4, 4)
        self.one.weight = self.other.weight  # shared


AGAINST = [
    (Copied(), "none", "the comment on"),
    (CopiedNumbers(), "none", "the comment on"),
    (CopiedBelow(), "none", "weights are tied"),
    (CopiedOnLines(), "none", "weight tying"),
    (Documented(), "none", "documentation"),
    (Plain(Settings(True)), "none", "tie_word_embeddings=True"),
    (Plain({"tie_weights": True}), "none", "tie_weights=True"),
    (Plain(Settings(False)), "all-three", "tie_word_embeddings=False"),
]
ALIKE = [
    (Copied(), "all-three"),
    (CopiedOpenly(), "none"),
    (Layered(), "none"),
    (Documented(), "all-three"),
    (Plain(), "none"),
    (Plain(), "all-three"),
    (Open(), "none"),
    (Plain(Settings(True)), "all-three"),
    (Documented(Settings(False)), "none"),
]


@pytest.mark.parametrize(("model", "tying", "source"), AGAINST)
def test_head_that_words_deny_is_asked_about(model: Plain, tying: str, source: str) -> None:
    with pytest.raises(Contrary, match=f"{source}.*Say which one is meant: --choice tying="):
        demand_tying("GPT", type(model), model, tying, Reading())
    demand_tying("GPT", type(model), model, tying, Reading(choices={"tying": tying}))


@pytest.mark.parametrize(("model", "tying"), ALIKE)
def test_head_that_words_allow_is_read(model: Plain, tying: str) -> None:
    demand_tying("GPT", type(model), model, tying, Reading())
