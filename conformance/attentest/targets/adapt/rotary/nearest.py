"""The choices of rotary positions that are taken as meant where none gives the numbers of code.

Among many options one always comes a little closer than the others by chance, and to take it would
name the wrong line: a base that the code does not have differs in the frequencies.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch

from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.rotary.forms import Form, without_scale
from attentest_spec import Choices, Sizes
from attentest_spec.setting import Floats

_FEWER = 0.8
"""The share of the differences of the usual option that one has to have to be taken instead."""


def nearest(options: Sequence[Choices], counts: Sequence[int], pairs: str) -> int:
    """Return the number of the option that is meant, of which `counts` numbers differ.

    It is the first with these `pairs`, of any where they are "", unless another has far fewer
    differences.
    """
    usual = next(n for n, one in enumerate(options) if pairs in ("", one.rotary_pairs))
    least = int(np.argmin(counts))
    return least if counts[least] <= _FEWER * counts[usual] else usual


def pairs_of(
    form: Form, x: Floats, sizes: Sizes, answer: Callable[[Form, Floats], Floats | None]
) -> str:
    """Return the pairs that code turns, "" where nothing shows them.

    They are shown by the columns on which the first one of its output depends, or by the columns of
    its tables that are equal. x (B, H, L, E); `answer` returns it turned.
    """
    return _by_dependence(x, lambda x: answer(form, x)) or _by_tables(form, x, sizes)


def _by_dependence(x: Floats, turn: Callable[[Floats], Floats | None]) -> str:
    before = turn(x)
    if before is None:
        return ""
    for column in range(1, x.shape[-1]):
        changed = x.copy()
        changed[..., column] += 1.0
        after = turn(changed)
        if after is not None and (after[..., 0] != before[..., 0]).any():
            return "adjacent" if column == 1 else "halves"
    return ""


def _by_tables(form: Form, x: Floats, sizes: Sizes) -> str:
    try:
        with undisturbed():
            tables, _ = without_scale(form.tables(form.build(sizes), torch.from_numpy(x)))
    except Exception:  # code that a user wrote may raise anything
        return ""
    real = [one for one in tables if isinstance(one, torch.Tensor) and not one.is_complex()]
    if not real or any(one.shape[-1] != x.shape[-1] for one in real):
        return ""
    if all(torch.equal(one[..., 0::2], one[..., 1::2]) for one in real):
        return "adjacent"
    return "halves" if all(torch.equal(*one.chunk(2, -1)) for one in real) else ""
