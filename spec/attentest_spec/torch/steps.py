"""The calls of the modules inside a torch component, by the canonical names of their parts.

The home of a part is the module that owns its parameters and no others. Where several parts share
one module, such as one norm for all sublayers, its calls belong to them in turn.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from torch import Tensor, nn

from attentest_spec.mapping import Place, Table, locate

COMPONENTS: Mapping[str, str] = {
    "source_embedding": "embedding",
    "target_embedding": "embedding",
    "source_positions": "positional_encoding",
    "target_positions": "positional_encoding",
    "source_embedding_norm": "layer_norm",
    "target_embedding_norm": "layer_norm",
    "self_attention": "multi_head_attention",
    "cross_attention": "multi_head_attention",
    "self_attention_norm": "layer_norm",
    "cross_attention_norm": "layer_norm",
    "feed_forward_norm": "layer_norm",
    "norm": "layer_norm",
    "feed_forward": "feed_forward",
    "generator": "generator",
}
"""The component of a part, by the last word of its name."""

Homes = Mapping[nn.Module, list[str]]


@dataclass(frozen=True)
class Call:
    """One call of a part, as copies of its tensors; see :class:`attentest_spec.Step`."""

    part: str
    call: int
    inputs: tuple[Tensor, ...]
    output: Tensor


def find_homes(root: nn.Module, places: Mapping[str, Place], tables: Mapping[str, Table]) -> Homes:
    """Return the modules inside `root` that are homes of parts, with the names of the parts.

    `places` are those of all canonical parameters of `root`, `tables` the parameter maps of the
    single components: they show where a module's own names begin.
    """
    known = [name for name, _ in root.named_parameters(remove_duplicate=False)]
    modules = dict(root.named_modules(remove_duplicate=False))
    found: dict[nn.Module, list[str]] = {}
    for part in _parts(places):
        inner = {name.removeprefix(f"{part}."): places[name] for name in _under(part, places)}
        path = _path(part, inner, tables)
        own = {name for place in inner.values() for name in place.names(known)}
        if path in modules and own == set(_under(path, known)) and not _rearranged(inner):
            found.setdefault(modules[path], []).append(part)
    return found


@contextmanager
def observe(found: Homes) -> Iterator[list[Call]]:
    """Collect the calls of the modules of `found` inside the block, in the order of their ends."""
    seen: list[Call] = []
    hooks = [
        module.register_forward_hook(_Hook(parts, seen), with_kwargs=True)
        for module, parts in found.items()
    ]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


class _Hook:
    """Records the calls of one module. Parts of one depth take turns; a deeper one is inside."""

    def __init__(self, parts: list[str], seen: list[Call]) -> None:
        depths = {part.count(".") for part in parts}
        self._turns = [
            [part for part in parts if part.count(".") == depth]
            for depth in sorted(depths, reverse=True)
        ]
        self._seen = seen
        self._calls = 0

    def __call__(
        self, module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any], output: Any
    ) -> None:
        output = output[0] if isinstance(output, tuple) else output
        if isinstance(output, Tensor):
            given = tuple(
                one.detach().clone()
                for one in (*inputs, *named.values())
                if isinstance(one, Tensor)
            )
            for parts in self._turns:
                call, turn = divmod(self._calls, len(parts))
                self._seen.append(Call(parts[turn], call, given, output.detach().clone()))
        self._calls += 1


def _parts(names: Mapping[str, Place]) -> list[str]:
    """Return every prefix of the canonical `names` that is a part, in their order."""
    found: dict[str, None] = {}
    for name in names:
        words = name.split(".")
        found |= dict.fromkeys(".".join(words[:length]) for length in range(1, len(words)))
    return [part for part in found if part.rpartition(".")[2] != "layers"]


def _under(path: str, names: Mapping[str, Place] | list[str]) -> list[str]:
    return [name for name in names if not path or name.startswith(f"{path}.")]


def _path(part: str, inner: Mapping[str, Place], tables: Mapping[str, Table]) -> str:
    """Return the path of the module of `part`, inferred from the names of its parameters."""
    table = tables.get(COMPONENTS.get(part.rpartition(".")[2], ""))
    if table:
        paths = {_before(place.name, _name(leaf, table)) for leaf, place in inner.items()}
        path = paths.pop()
        if path is not None and not paths:
            return path
    words = [place.name.split(".")[:-1] for place in inner.values()]
    alike = takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False))
    return ".".join(column[0] for column in alike)


def _name(leaf: str, table: Table) -> str:
    try:
        return locate(leaf, table).name
    except KeyError:
        return leaf


def _before(name: str, end: str) -> str | None:
    """Return `name` without its `end`; None where it ends otherwise."""
    if name == end:
        return ""
    return name.removesuffix(f".{end}") if name.endswith(f".{end}") else None


def _rearranged(inner: Mapping[str, Place]) -> bool:
    """Say whether it is a single map that is stored, and so answers, in another order."""
    return any("." not in leaf and (place.layout or place.part) for leaf, place in inner.items())
