"""Reads the sizes of a model off the entries of its checkpoint.

The backend's model is built small, and again with one size changed: entries whose shapes change
with it show that size, and entries that come with it count it. What no entry shows (the number of
heads, most often) has to be known from elsewhere.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache

from attentest.harness.errors import NotConvertible
from attentest.studies.convert.built import Built, Shapes, finest, shapes_of
from attentest.studies.convert.phrases import listed
from attentest_spec import Backend, Choices, Sizes
from attentest_spec.parameters import one_vocabulary

SMALL = Sizes(d_model=32, heads=1, d_ff=10, layers=1, target_vocabulary=11)
"""Sizes that others are compared with; a quarter of a head is even, with two heads too."""

SHOWN = (
    *("layers", "d_model", "heads", "kv_heads", "d_ff"),
    *("source_vocabulary", "target_vocabulary", "max_length"),
)  # fmt: skip
"""The sizes that entries can show; heads after the width, which theirs may be a multiple of."""


class Probed:
    """The entries that a backend's model has at small sizes."""

    def __init__(self, backend: Backend, whole: str) -> None:
        """Build it once; raise NotConvertible where that fails."""
        self.backend = backend
        self.whole = whole
        self.tied = one_vocabulary(Choices.of(backend.choices))
        self.shapes = lru_cache(self._shapes)
        self.small = self.shapes(SMALL)

    def together(self, size: str) -> tuple[str, ...]:
        """Return the sizes that have to be equal to `size`, itself included."""
        one = ("source_vocabulary", "target_vocabulary")
        return one if self.tied and size in one else (size,)

    def depends(self, size: str) -> bool:
        """Say whether any entry depends on `size`."""
        return self.after(size) != self.small

    def after(self, size: str, start: Sizes = SMALL) -> Shapes:
        """Return the entries with `size` doubled; as they were where that is refused."""
        return self.at(size, 2 * getattr(start, size), start) or self.shapes(start)

    def at(self, size: str, value: int, start: Sizes = SMALL) -> Shapes:
        """Return the entries with `size` at `value`, none where that is refused."""
        try:
            return self.shapes(start.but(**dict.fromkeys(self.together(size), value)))
        except NotConvertible:
            return {}

    def _shapes(self, sizes: Sizes) -> Shapes:
        fitted = self.backend.limits.fitted(sizes)
        return shapes_of(Built(self.backend, self.whole, fitted, finest(self.backend)).state())


def shown(stored: Shapes, probed: Probed, given: Mapping[str, int]) -> dict[str, int]:
    """Return the sizes that the shapes in `stored` show, and those `given`."""
    backend = probed.backend
    if not stored.keys() & probed.small.keys():
        raise NotConvertible(
            f"The checkpoint holds no entry of {backend.name}. It holds {listed(stored, 5)}; a "
            f"model of {backend.name} has {listed(probed.small, 5)}."
        )
    found = dict(given)
    for size in SHOWN:
        if size not in found:
            value = _limited(backend, size) or _dependent(backend, size, found)
            value = (
                value or _counted(stored, probed, size) or _measured(stored, probed, size, found)
            )
            found |= {size: value} if value else {}
    return found


def _limited(backend: Backend, size: str) -> int:
    """Return the one value that the limits allow, 0 where they allow more."""
    limits = {"layers": backend.limits.layers, "heads": backend.limits.heads}
    return 1 if limits.get(size) == 1 else 0


def _dependent(backend: Backend, size: str, found: Mapping[str, int]) -> int:
    """Return the inner width that the limits fix beside the width, 0 for another size."""
    if size != "d_ff" or backend.limits.inner is None or "d_model" not in found:
        return 0
    return backend.limits.fitted(SMALL.but(d_model=found["d_model"])).d_ff


def _counted(stored: Shapes, probed: Probed, size: str) -> int:
    """Return how often entries come that belong to one more of `size`; 0 where none does."""
    if size not in ("layers", "heads") or probed.after(size).keys() == probed.small.keys():
        return 0
    value, before = 1, probed.small
    while (more := _with(probed, size, value + 1)).keys() - before.keys() & stored.keys():
        value, before = value + 1, more
    return value


def _with(probed: Probed, size: str, value: int) -> Shapes:
    """Return the entries with that many layers, or heads of a width that they divide."""
    start = SMALL.but(d_model=SMALL.d_model * value) if size == "heads" else SMALL
    return probed.at(size, value, start)


def _measured(stored: Shapes, probed: Probed, size: str, found: Mapping[str, int]) -> int:
    """Return the `size` that most shapes say; 0 where none does.

    Of a width that is a multiple of the model's there are fewer: every matrix with it has both.
    """
    if size == "kv_heads":
        return _shared(stored, probed, found)
    start = SMALL.but(d_model=found.get("d_model", SMALL.d_model)) if size == "heads" else SMALL
    base: int = getattr(start, size)
    return _most(stored, _changes(probed.shapes(start), probed.after(size, start)), base, 2 * base)


def _shared(stored: Shapes, probed: Probed, found: Mapping[str, int]) -> int:
    """Return how many heads of keys most shapes say, 0 for as many as there are of queries."""
    heads = found.get("heads", 1)
    start = SMALL.but(d_model=found.get("d_model", SMALL.d_model), heads=heads, kv_heads=1)
    if heads == 1:
        return 0
    one, many = probed.at("kv_heads", 1, start), probed.at("kv_heads", heads, start)
    return _most(stored, _changes(one, many), 1, heads)


def _most(
    stored: Shapes, changes: Iterator[tuple[tuple[str, int], int, int]], base: int, other: int
) -> int:
    """Return the size that most of the axes say that are `changes` from one size to another one."""
    said: Counter[int] = Counter()
    for (name, axis), before, after in changes:
        if len(stored.get(name, ())) > axis:
            more, rest = divmod((stored[name][axis] - before) * (other - base), after - before)
            said[base + more] += 1 if rest == 0 and base + more > 0 else 0
    return said.most_common(1)[0][0] if said.total() else 0


def _changes(before: Shapes, after: Shapes) -> Iterator[tuple[tuple[str, int], int, int]]:
    """Yield every axis of an entry that has another length, with both lengths."""
    for name in before.keys() & after.keys():
        if len(before[name]) == len(after[name]):
            for axis, pair in enumerate(zip(before[name], after[name], strict=True)):
                if pair[0] != pair[1]:
                    yield (name, axis), *pair
