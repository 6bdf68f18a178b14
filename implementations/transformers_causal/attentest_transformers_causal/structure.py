"""The structure of a built model: which module is which part, and where its parameters are."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import nn

from attentest_spec import Place, Table
from attentest_transformers_causal import model as library

ATTENTION, FEED_FORWARD = "self_attention", "feed_forward"


class NotJudged(ValueError):
    """Raised for a model that is outside of the specification; the text is the reason."""


def is_norm(module: nn.Module) -> bool:
    """Say whether the module is a norm, by the name of its class."""
    return "norm" in type(module).__name__.lower() and not list(module.children())


def is_matrix(module: nn.Module) -> bool:
    """Say whether the module is a linear map, of torch or of the library."""
    return isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"


@dataclass(frozen=True)
class Structure:
    """The parts of a built model, in the order in which a call reaches them.

    `order` are the names of all embeddings, norms and linear maps that were called.
    """

    model: Any
    order: tuple[str, ...]

    @classmethod
    def of(cls, model: Any) -> "Structure":
        """Return the structure of a model, which is called once."""
        called: list[str] = []
        hooks = [
            module.register_forward_hook(lambda *_, name=name: called.append(name))
            for name, module in model.named_modules()
            if is_norm(module) or is_matrix(module) or isinstance(module, nn.Embedding)
        ]
        with torch.no_grad():
            library.logits(model, torch.arange(5)[None])
        for hook in hooks:
            hook.remove()
        return cls(model, tuple(dict.fromkeys(called)))

    @cached_property
    def modules(self) -> Mapping[str, nn.Module]:
        """All modules by name."""
        return dict(self.model.named_modules())

    @cached_property
    def layers(self) -> str:
        """The name of the list of blocks."""
        try:
            return library.blocks(self.model)[0]
        except ValueError as none:
            raise NotJudged(str(none)) from none

    @cached_property
    def block(self) -> tuple[str, ...]:
        """The parts of the first block, named from there, in order."""
        start = f"{self.layers}.0."
        return tuple(name.removeprefix(start) for name in self.order if name.startswith(start))

    @property
    def outside(self) -> tuple[str, ...]:
        """The parts outside of the blocks, in order."""
        return tuple(name for name in self.order if not name.startswith(f"{self.layers}."))

    def inside(self, name: str) -> nn.Module:
        """Return the part `name` of the first block."""
        return self.modules[f"{self.layers}.0.{name}"]

    @cached_property
    def attention(self) -> str:
        """The name of the attention in a block."""
        for name in self.block:
            head = name.rpartition(".")[0]
            if is_matrix(self.inside(name)) and "att" in head.lower():
                return head
        raise NotJudged("its first block has no attention")

    @property
    def attention_matrices(self) -> list[str]:
        """The linear maps of attention, in order."""
        return [one for one in self._matrices if one.startswith(f"{self.attention}.")]

    @property
    def network(self) -> list[str]:
        """The linear maps of the feed-forward network, in order."""
        return [one for one in self._matrices if not one.startswith(f"{self.attention}.")]

    @property
    def _matrices(self) -> list[str]:
        return [one for one in self.block if is_matrix(self.inside(one))]

    @property
    def head_norms(self) -> list[str]:
        """The norms inside attention."""
        return [
            one
            for one in self.block
            if is_norm(self.inside(one)) and one.startswith(f"{self.attention}.")
        ]

    @property
    def norms(self) -> list[str]:
        """The norms of a block outside of attention, in order."""
        return [
            one for one in self.block if is_norm(self.inside(one)) and one not in self.head_norms
        ]

    @property
    def signature(self) -> str:
        """The order of norms (N), attention (A) and network (F) in a block, as "NANF"."""
        kinds = []
        for name in self.block:
            if name in self.norms:
                kinds.append("N")
            elif is_matrix(self.inside(name)):
                kinds.append("A" if name.startswith(f"{self.attention}.") else "F")
        return re.sub(r"(A|F)\1+", r"\1", "".join(kinds))

    def unnamed(self, table: Table) -> list[str]:
        """Return the parameters that `table` leaves out."""
        numbers = map(str, range(self.model.config.num_hidden_layers))
        used = tuple(_name(one).replace("*", at, 1) for at in numbers for one in table.values())
        return [name for name, _ in self.model.named_parameters() if not name.startswith(used)]


def _name(entry: str | Place) -> str:
    return entry if isinstance(entry, str) else entry.name


def attention_tables(found: Structure) -> Iterator[dict[str, str | Place]]:
    """Yield the tables of attention's projections; several where packed ones can be read so."""
    *projections, output = found.attention_matrices
    ends = _entries(found, "output", output)
    if len(projections) == 3:
        named = {_letter(one): one for one in projections}
        if set(named) != set("qkv"):
            raise NotJudged(f"its projections are {', '.join(projections)}")
        parts = (("query", "q"), ("key", "k"), ("value", "v"))
        separate = [_entries(found, name, named[letter]) for name, letter in parts]
        yield {**separate[0], **separate[1], **separate[2], **ends}
        return
    if len(projections) != 1:
        raise NotJudged(f"its attention has the linear maps {', '.join(found.attention_matrices)}")
    for kind in ("span", "heads"):
        yield {**_packed(found, projections[0], kind), **ends}


def _letter(name: str) -> str:
    return name.rpartition(".")[2].lower().removeprefix("w").lstrip("_")[:1]


def _packed(found: Structure, name: str, kind: str) -> dict[str, str | Place]:
    """Return the places of query, key and value in one matrix: in turn, or head by head."""
    turned = type(found.inside(name)).__name__ == "Conv1D"
    table: dict[str, str | Place] = {}
    for number, part in enumerate(("query", "key", "value")):
        for leaf, _ in found.inside(name).named_parameters():
            stored, matrix = f"{name}.{leaf}", leaf == "weight"
            if kind == "span":
                place = Place(stored, span=part, transpose=turned and matrix)
            else:
                layout = "(h n e) d -> (n h e) d" if matrix else "(h n e) -> (n h e)"
                place = Place(stored, layout=layout, part=(number, 3), transpose=turned and matrix)
            table[f"{part}.{leaf}"] = place
    return table


def _entries(found: Structure, canonical: str, name: str) -> dict[str, str | Place]:
    """Return the places of a linear map's parameters."""
    turned = type(found.inside(name)).__name__ == "Conv1D"
    return {
        f"{canonical}.{leaf}": Place(f"{name}.{leaf}", transpose=turned and leaf == "weight")
        for leaf, _ in found.inside(name).named_parameters()
    }


def network_tables(found: Structure, inner: int) -> Iterator[dict[str, str | Place]]:
    """Yield the tables of the network, with `inner` columns; several where two are alike."""
    if len(found.network) not in (2, 3):
        raise NotJudged(f"its network has the linear maps {', '.join(found.network) or 'none'}")
    *first, last = found.network
    end = _entries(found, "outer", last)
    if len(first) == 2:
        gate, value = sorted(first, key=lambda one: "gate" not in one)
        yield {**_entries(found, "gate", gate), **_entries(found, "inner", value), **end}
        yield {**_entries(found, "gate", value), **_entries(found, "inner", gate), **end}
    elif found.inside(first[0]).weight.numel() == 2 * found.inside(last).weight.numel():  # type: ignore[operator]
        for order in (("gate", "inner"), ("inner", "gate")):
            yield {**_halves(found, first[0], order), **end}
    else:
        yield {**_entries(found, "inner", first[0]), **end}


def _halves(found: Structure, name: str, order: tuple[str, str]) -> dict[str, str | Place]:
    return {
        f"{part}.{leaf}": Place(f"{name}.{leaf}", part=(number, 2))
        for number, part in enumerate(order)
        for leaf, _ in found.inside(name).named_parameters()
    }


def norm_table(module: nn.Module, canonical: str, own: str) -> dict[str, str | Place]:
    """Return the places of the weight and the bias of a norm."""
    leaves = {"weight": "gain", "bias": "bias"}
    return {
        f"{canonical}.{leaves.get(leaf, leaf)}": f"{own}.{leaf}"
        for leaf, _ in module.named_parameters()
    }
