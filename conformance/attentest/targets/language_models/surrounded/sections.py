"""Decoder-only models with all modules in one list: the layers get numbers of their own."""

from dataclasses import replace

from attentest.targets.language_models.construction.building import Building
from attentest.targets.language_models.surrounded.modules import sectioned


def in_sections(built: Building, path: str, start: int, count: int) -> Building:
    """Return `built` with the list at `path` in sections: each layer is `count` of its items.

    There are `start` items before the layers.
    """
    layers = "sizes.layers" if count == 1 else f"{count} * sizes.layers"
    return replace(
        built,
        expression=f'{sectioned.__name__}({built.expression}, "{path}", {start}, {layers})',
        space={**built.space, sectioned.__name__: sectioned},
    )


def is_in_sections(built: Building) -> bool:
    """Say whether the list of `built` is in sections."""
    return built.expression.startswith(f"{sectioned.__name__}(")
