"""A program of steps with a cache, on functions that begin, continue and reorder a cache."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from attentest_spec.contract import Unsupported


@dataclass(frozen=True)
class Stepwise:
    """Three functions: `start` begins a cache, `step` continues it, `reorder` exchanges its rows.

    `start` takes what a cache begins with: source tokens (B, S), or the number of rows. `step`
    takes a cache and the inputs of new tokens (B, N), of which it returns the scores (B, N, V) and
    a cache, and `reorder` a cache and rows (B,).
    """

    start: Callable[[Any], Any]
    step: Callable[..., tuple[Any, Any]]
    reorder: Callable[[Any, Any], Any] | None

    def scores(
        self,
        begin: Any,
        parts: Iterable[Sequence[Any]],
        after: Sequence[int],
        origin: Iterable[Any],
    ) -> list[Any]:
        """Return the scores of every part: it goes on `after` one, from rows of `origin`.

        A part has the inputs of one step. Raises Unsupported where rows are exchanged, and nothing
        reorders them.
        """
        caches: list[Any] = []
        found: list[Any] = []
        for inputs, earlier, rows in zip(parts, after, origin, strict=True):
            cache = self._continued(begin, caches, earlier, rows)
            scores, cache = self.step(cache, *inputs)
            caches.append(cache)
            found.append(scores)
        return found

    def _continued(self, begin: Any, caches: Sequence[Any], earlier: int, rows: Any) -> Any:
        if earlier < 0:
            return self.start(begin)
        if rows.tolist() == list(range(len(rows))):
            return caches[earlier]
        if self.reorder is None:
            raise Unsupported("it does not reorder the rows of a cache")
        return self.reorder(caches[earlier], rows)
