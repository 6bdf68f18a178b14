"""Modules that make a whole decoder-only model of a part of one.

The classes need nothing else of the suite: reproductions and written adapters contain their source.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from attentest.targets.adapt.wrappers.turned import TURNED_SOURCE
from attentest.targets.language_models.surrounded.keywords import with_keywords


class Generated(nn.Module):
    """A `model` of states (B, T, D) with logits: its own `table` of tokens generates them.

    `part` is the place of the states in its result, and `attribute` says that it is an attribute.
    """

    def __init__(
        self,
        model: nn.Module,
        table: str,
        part: int | str | None = None,
        *,
        attribute: bool = False,
    ) -> None:
        super().__init__()
        self.model = model
        self.table, self.part, self.attribute = table, part, attribute

    def forward(self, *args: Any, **given: Any) -> Tensor:
        """Return the logits (B, T, V) of the states that `model` returns."""
        states = self.model(*args, **given)
        if self.attribute:
            states = getattr(states, str(self.part))
        elif self.part is not None:
            states = states[self.part]
        logits: Tensor = states @ self.model.get_parameter(self.table).T
        return logits


class EveryStep(nn.Module):
    """A `model` that returns the logits of the last token alone, called with each beginning.

    `tokens` is its argument of tokens, `part` the place of the logits in its result, and
    `attribute` says that it is an attribute.
    """

    def __init__(
        self,
        model: nn.Module,
        tokens: str,
        part: int | str | None = None,
        *,
        attribute: bool = False,
    ) -> None:
        super().__init__()
        self.model = model
        self.tokens, self.part, self.attribute = tokens, part, attribute

    @property
    def calls_alone(self) -> nn.Module:
        """The model, which may switch gradients off."""
        return self.model

    def forward(self, **given: Any) -> Tensor:
        """Return the logits (B, T, V) for tokens (B, T)."""
        tokens, steps = given[self.tokens], []
        for end in range(1, tokens.shape[1] + 1):
            found = self.model(**{**given, self.tokens: tokens[:, :end]})
            if self.attribute:
                found = getattr(found, str(self.part))
            elif self.part is not None:
                found = found[self.part]
            steps.append(found.reshape(len(tokens), -1))
        return torch.stack(steps, 1)


class FilledUp(nn.Module):
    """A causal `model` that takes texts of one `length` alone: others are filled up at their end.

    `tokens` is its argument of tokens. What it returns for the rest of a text is left out.
    """

    def __init__(self, model: nn.Module, tokens: str, length: int) -> None:
        super().__init__()
        self.model = model
        self.tokens, self.length = tokens, length

    @property
    def calls_alone(self) -> nn.Module:
        """The model, which may switch gradients off."""
        return self.model

    def forward(self, **given: Any) -> Any:
        """Return what the model does for tokens (B, T)."""
        tokens = given[self.tokens]
        steps = tokens.shape[1]
        rest = tokens.new_zeros(len(tokens), max(0, self.length - steps))
        found = self.model(**{**given, self.tokens: torch.cat([tokens, rest], 1)})
        parts, form = tree_flatten(found)
        for number, one in enumerate(parts):
            if isinstance(one, Tensor) and one.ndim > 1 and one.shape[1] == self.length:
                parts[number] = one[:, :steps]
        return tree_unflatten(parts, form)


class OneText(nn.Module):
    """A `model` of one text (T,), without an axis for texts: it is called with each of several.

    `tokens` is its argument of tokens.
    """

    def __init__(self, model: nn.Module, tokens: str) -> None:
        super().__init__()
        self.model = model
        self.tokens = tokens

    @property
    def calls_alone(self) -> nn.Module:
        """The model, which may switch gradients off."""
        return self.model

    def forward(self, **given: Any) -> Any:
        """Return what the model does for each of the texts (B, T), stacked."""
        texts = given[self.tokens]
        found = [tree_flatten(self.model(**{**given, self.tokens: one})) for one in texts]
        parts = [
            torch.stack(each) if isinstance(each[0], Tensor) else each[0]
            for each in zip(*(held for held, _ in found), strict=True)
        ]
        return tree_unflatten(parts, found[0][1])


class OfBlocks(nn.Module):
    """The `blocks` of a decoder-only model between a table of tokens and a generator.

    A block gets x (B, T, D) as its argument `x`, those that are `fixed`, and the positions 0 to
    T - 1 as its argument `places`, if that is not "". The next one gets the first that it returns.
    """

    def __init__(
        self,
        blocks: Sequence[nn.Module],
        vocabulary: int,
        width: int,
        x: str,
        *,
        places: str = "",
        **fixed: Any,
    ) -> None:
        super().__init__()
        if not blocks or min(vocabulary, width) < 1:
            raise ValueError("a model has blocks, a width and a vocabulary")
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(blocks)
        self.generator = nn.Linear(width, vocabulary, bias=False)
        self.x, self.places, self.fixed = x, places, fixed

    def forward(self, tokens: Tensor, **given: Any) -> Tensor:
        """Return the logits (B, T, V) for tokens (B, T); blocks get what is `given` besides."""
        x, given = self.embedding(tokens), {**self.fixed, **given}
        if self.places:
            given[self.places] = torch.arange(tokens.shape[1], device=tokens.device)[None]
        for block in self.blocks:
            found = block(**{self.x: x}, **given)
            x = found[0] if isinstance(found, tuple | list) else found
        logits: Tensor = self.generator(x)
        return logits


class Sections(nn.Module):
    """A list of modules that are called in turn: `start` before the layers, `count` layers."""

    def __init__(self, items: Sequence[nn.Module], start: int, count: int) -> None:
        super().__init__()
        self.before = nn.ModuleList(items[:start])
        self.layers = nn.ModuleList(items[start : start + count])
        self.after = nn.ModuleList(items[start + count :])

    def __iter__(self) -> Iterator[nn.Module]:
        return iter([*self.before, *self.layers, *self.after])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __getitem__(self, number: int) -> nn.Module:
        return list(iter(self))[number]

    def forward(self, x: Any) -> Any:
        """Return what the modules make of x, each of the result of the last one."""
        for one in self:
            x = one(x)
        return x


def sectioned(model: nn.Module, path: str, start: int, count: int) -> nn.Module:
    """Return `model` with the list at `path` in sections, so that its layers have own numbers."""
    made = Sections(list(model.get_submodule(path).children()), start, count)
    if not path:
        return made
    parent, _, name = path.rpartition(".")
    setattr(model.get_submodule(parent), name, made)
    return model


_IMPORTS = "from typing import Any\n\nimport torch\nfrom torch import Tensor, nn\n\n\n"
GENERATED_SOURCE = _IMPORTS + inspect.getsource(Generated)
_WITH_TREES = (
    "from typing import Any\n\nimport torch\nfrom torch import Tensor, nn\n"
    "from torch.utils._pytree import tree_flatten, tree_unflatten\n\n\n"
)
FILLED_UP_SOURCE = _WITH_TREES + inspect.getsource(FilledUp)
ONE_TEXT_SOURCE = _WITH_TREES + inspect.getsource(OneText)
EVERY_STEP_SOURCE = _IMPORTS + inspect.getsource(EveryStep)
SECTIONS_SOURCE = "\n\n".join(
    [
        "from collections.abc import Iterator, Sequence",
        f"{_IMPORTS}{inspect.getsource(Sections)}",
        inspect.getsource(sectioned),
    ]
)
OF_BLOCKS_SOURCE = "\n\n".join(
    ["from collections.abc import Sequence", TURNED_SOURCE, inspect.getsource(OfBlocks)]
)
"""The classes as code of their own."""


def called_of(model: nn.Module) -> Callable[..., Any]:
    """Return the method that a call of `model`, or of the part that is in it, runs."""
    return (
        model.model.forward
        if isinstance(model, Generated | EveryStep | FilledUp | OneText)
        else model.forward
    )


def signature_of(model: nn.Module) -> inspect.Signature:
    """Return the signature of a call of `model`, or of the part that is in it."""
    if isinstance(model, EveryStep | FilledUp | OneText):
        own = with_keywords(called_of(model)).parameters.values()
        needed = [one for one in own if one.default is one.empty or one.name == model.tokens]
        return inspect.Signature(needed)
    if not isinstance(model, OfBlocks):
        return with_keywords(called_of(model))
    tokens = inspect.signature(model.forward).parameters["tokens"]
    block = model.blocks[0]
    held = inspect.signature(getattr(block, "attention", block).forward).parameters
    masks = [one for one in held.values() if "mask" in one.name.lower()]
    return inspect.Signature([tokens, *[one.replace(default=None) for one in masks]])
