"""The formulas of the masks, and how they are got wrong."""

import numpy as np

from attentest.analysis.lines.formula import Formula, Mistake, Step
from attentest_spec.masks import causal_mask, padding_mask


def padding(formula: Formula, tokens: Step, pad: int) -> Step:
    """Add the mask of the tokens that are no padding."""
    other = {formula.sizes.source_pad, formula.sizes.target_pad, 0} - {pad}
    return formula.step(
        "",
        f"padding mask of the {tokens.name}",
        lambda tokens: padding_mask(formula.setting, tokens, pad),
        tokens,
        text=f"the keys that are not the padding id {pad}",
        axes="BHQK",
        mistakes=[
            Mistake("all keys, padding too", lambda t: np.ones_like(t, dtype=bool)[:, None, None]),
            Mistake("the keys that are padding (inverted)", lambda t: (t == pad)[:, None, None]),
            *(
                Mistake(
                    f"the keys that are not {one}", lambda t, one=one: (t != one)[:, None, None]
                )
                for one in other
            ),
        ],
    )


def whole_target_mask(formula: Formula, tokens: Step, pad: int) -> Step:
    """Add the mask that hides padding and what comes after a query."""
    length = tokens.value.shape[1]
    real = padding(formula, tokens, pad)
    later = causal(formula, length)
    return formula.step(
        "",
        "target mask",
        lambda padding, causal: padding & causal,
        real,
        later,
        text="keys that are no padding and not after their query",
        axes="BHQK",
        mistakes=[
            Mistake("the padding mask alone", lambda p, c: p & np.ones_like(c)),
            Mistake("the causal mask alone", lambda p, c: c & np.ones_like(p)),
            Mistake("either of the two masks", lambda p, c: p | c),
            Mistake("padding queries hidden, not keys", lambda p, c: p.swapaxes(-1, -2) & c),
        ],
    )


def causal(formula: Formula, length: int) -> Step:
    """Add the mask that hides what comes after a query."""
    return formula.step(
        "",
        "causal mask",
        lambda: causal_mask(formula.setting, length),
        text="each position sees itself and those before it",
        axes="BHQK",
        mistakes=_other_causal(length),
    )


def _other_causal(length: int) -> list[Mistake]:
    """Return the masks that are written by mistake for a causal one."""
    ones = np.ones((1, 1, length, length), dtype=bool)
    return [
        Mistake("each position sees only those before it, not itself", lambda: np.tril(ones, -1)),
        Mistake("each position sees one after it too", lambda: np.tril(ones, 1)),
        Mistake("each position sees itself and those after it", lambda: np.triu(ones)),
        Mistake("each position sees only those after it", lambda: np.triu(ones, 1)),
    ]
