"""Masks of padding that a decoder-only model takes at the end of texts alone."""

from dataclasses import replace

from attentest.targets.language_models.written import LanguageAdapter

NO_NUMBER = "differs by nan"
"""The end of the words on outputs that are no numbers."""

_AT_END = (
    "assumed that texts are padded at their end alone: with padding before them, {} makes NaN of "
    "all tokens, as a token of padding sees no key: a mistake if prompts are padded on the left"
)


def padded_at_end(adapter: LanguageAdapter) -> LanguageAdapter:
    """Return `adapter` without padding before tokens."""
    said = _AT_END.format(adapter.call.mask)
    return replace(
        adapter,
        building=replace(adapter.building, doubts=(*adapter.building.doubts, said)),
        limits=replace(adapter.limits, right_padded=("target",)),
    )
