"""Linear maps among the numbers of a call: a matrix, with a bias where one is added."""

from collections.abc import Iterator
from dataclasses import dataclass

from attentest.targets.language_models.numbers.places import View, matching
from attentest.targets.language_models.numbers.reader import Reader
from attentest_spec.setting import Floats


@dataclass(frozen=True)
class Linear:
    """A linear map that a call computes: its matrix, its bias or None, and its output."""

    weight: View
    bias: View | None
    output: Floats

    def views(self, path: str) -> dict[str, View]:
        """Return the views under the canonical `path`."""
        biased = {f"{path}.bias": self.bias} if self.bias else {}
        return {f"{path}.weight": self.weight, **biased}


def linears(reader: Reader, x: Floats, rows: int, *, late: bool = False) -> Iterator[Linear]:
    """Yield the maps of x (B, T, C) to `rows` columns that the call computes.

    The bias is part of it wherever the sum is computed: without one it would be left out. A `late`
    bias may be added after the map was added to something else, and is tried last.
    """
    for weight in reader.matrices(rows, x.shape[-1]):
        plain = x @ weight.values.T
        own = [bias for bias in reader.rows(rows) if matching(weight, bias)]
        sums = [Linear(weight, bias, plain + bias.values) for bias in own]
        computed = [one for one in sums if reader.holds_map(weight.place, one.output)]
        yield from computed
        if not computed and reader.holds_map(weight.place, plain):
            yield Linear(weight, None, plain)
            yield from sums if late else ()
