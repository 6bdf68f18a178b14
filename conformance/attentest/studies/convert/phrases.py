"""Phrases of the texts that report a conversion."""

from collections.abc import Iterable


def listed(names: Iterable[str], most: int = 20) -> str:
    """Return `names` joined by commas, of many the first and how many more there are."""
    known = list(names)
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return ", ".join(known[:most]) + more


def phrases(*pairs: tuple[str, Iterable[str]]) -> list[str]:
    """Return a phrase for every pair of a text and the names that it is true of, if any."""
    known = [(text, list(names)) for text, names in pairs]
    return [f"{text}: {', '.join(names)}" for text, names in known if names]
