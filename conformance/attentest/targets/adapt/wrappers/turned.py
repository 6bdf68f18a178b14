"""Attention that is given rotary positions by its caller, with the tables made around it.

The class needs nothing else of the suite: reproductions and written adapters contain its source.
"""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn


class Turned(nn.Module):
    """Calls `attention` with the cosines and sines of the positions 0 to T - 1.

    `tables` says what each argument gets: "cosines", "sines", "angles", "complex" numbers, "pair"
    for both in a tuple, or "stacked" for both along a last axis of 2. `columns` is "halves" or
    "pairs" where the angle of a pair is there for both of its columns, "once" where it is there
    once; `lead` is the number of axes before (T, width). The tables are those of a `part` of the
    columns of a head.
    """

    def __init__(
        self,
        attention: nn.Module,
        width: int,
        *,
        tables: Mapping[str, str],
        columns: str = "once",
        lead: int = 0,
        part: float = 1.0,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.width, self.columns, self.lead = int(part * width), columns, lead
        self.tables = dict(tables)

    def forward(self, *args: Any, **named: Any) -> Any:
        """Return what `attention` returns for x (B, T, D), the first tensor of floats."""
        tensors = [one for one in (*args, *named.values()) if isinstance(one, Tensor)]
        x = next(one for one in tensors if one.is_floating_point())
        made = {own: self.table(kind, x) for own, kind in self.tables.items()}
        return self.attention(*args, **named, **made)

    def table(self, kind: str, x: Tensor) -> Any:
        """Return the table of one `kind` for x (B, T, D)."""
        fine = torch.float64 if x.dtype == torch.float64 else torch.float32
        columns = torch.arange(0, self.width, 2, dtype=fine, device=x.device)
        places = torch.arange(x.shape[-2], dtype=fine, device=x.device)
        angles = places[:, None] * 10000.0 ** (-columns / self.width)
        if self.columns == "halves":
            angles = torch.cat([angles, angles], dim=-1)
        elif self.columns == "pairs":
            angles = angles.repeat_interleave(2, dim=-1)
        angles = angles[(None,) * self.lead]
        if kind == "complex":
            return torch.polar(torch.ones_like(angles), angles)
        if kind == "stacked":
            return torch.stack([angles.cos(), angles.sin()], dim=-1).to(x.dtype)
        if kind == "pair":
            return angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        made = {"cosines": angles.cos(), "sines": angles.sin(), "angles": angles}
        return made[kind].to(x.dtype)


TURNED_SOURCE = "\n".join(
    [
        "from collections.abc import Mapping",
        "from typing import Any",
        "",
        "import torch",
        "from torch import Tensor, nn",
        "",
        "",
        inspect.getsource(Turned),
    ]
)
"""The class as code of its own, for a reproduction or a written adapter."""

PARTS = (1.0, 0.5, 0.25, 0.75)
"""The parts of the columns of a head that are tried."""

GIVEN = "{} given as the rotary positions 0 to T - 1, {}"
"""The sentence on the tables that the wrapper makes."""


_EVERY_PAIR_ONCE = frozenset(("complex", "stacked"))
"""Tables that hold the angle of a pair once."""


def forms(names: Sequence[str]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the options that give the arguments `names` rotary positions, each in words."""
    kinds = _kinds(names)
    for part, (tables, words) in product(PARTS, kinds):
        once_alone = not _EVERY_PAIR_ONCE.isdisjoint(tables.values())
        columns = ("once",) if once_alone else ("halves", "once", "pairs")
        for one in columns:
            for lead in (0, 1, 2):
                shape = ", ".join([*["1"] * lead, "T", _width(part, once=one == "once")])
                options = {"tables": tables, "columns": one, "lead": lead}
                yield options | ({"part": part} if part < 1 else {}), f"{words} ({shape})"


def _width(part: float, *, once: bool) -> str:
    """Return in words how wide tables are, as a share of the width E of a head."""
    if part == 1:
        return "E/2" if once else "E"
    return f"{part / 2 if once else part:g} E"


def _kinds(names: Sequence[str]) -> list[tuple[dict[str, str], str]]:
    """Return what each argument may carry: one for each of two tables, or one for both."""
    if len(names) == 1:
        return [
            ({names[0]: kind}, words)
            for kind, words in (
                ("complex", "complex numbers"),
                ("angles", "angles"),
                ("stacked", "cosines and sines along a last axis of 2"),
                ("pair", "cosines and sines"),
            )
        ]
    cosines = [own for own in names if "cos" in own.lower()]
    sines = [own for own in names if "sin" in own.lower() and own not in cosines]
    if len(names) != 2 or len(cosines) != 1 or len(sines) != 1:
        return []
    return [({cosines[0]: "cosines", sines[0]: "sines"}, "cosines and sines")]
