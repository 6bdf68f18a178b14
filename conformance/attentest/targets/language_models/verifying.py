"""Comparisons of an inferred backend with the reference, at sizes that it was not inferred from."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager

import numpy as np

from attentest.results.text import summary
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.language_models.numbers.tracing import NEAR
from attentest.targets.single import widened
from attentest_spec import Backend, Choices, Sizes
from attentest_spec.language_model import language_model
from attentest_spec.parameters import draw
from attentest_spec.setting import Array, Floats, Setting

ROOM = {"float64": 1e-12, "float32": 1e-3}
"""Difference that numbers may have, as a part of the largest one."""

TRIED = (
    Sizes(d_model=64, heads=4, kv_heads=2, d_ff=20, layers=3, target_vocabulary=17, max_length=12),
    Sizes(d_model=80, heads=5, kv_heads=1, d_ff=24, layers=1, target_vocabulary=19, max_length=9),
    Sizes(d_model=96, heads=12, kv_heads=3, d_ff=28, target_vocabulary=13, max_length=40),
)
"""Sizes with numbers of heads that are powers of two and that are not, and one shared head."""

DEPTH = 12
"""The largest number of layers at which numbers are compared: some models change with depth."""

Inputs = tuple[Array, Array | None, Array | None]
"""Tokens (B, T), a mask of padding and positions, or None."""


def difference(
    backend: Backend, precision: str = "float64", *, wide: bool = False, room: float = NEAR
) -> str:
    """Return at which sizes the numbers differ from the reference, or why there are none.

    "" where they agree; `wide` computes in double precision whatever the code asks for, and `room`
    is the difference that is allowed there.
    """
    for sizes in TRIED:
        most = min(sizes.max_length, backend.limits.length or sizes.max_length)
        calls = [(tokens_at(sizes, length), None, None) for length in (5, 1, most)]
        if found := compared(backend, sizes, calls, precision, wide=wide, near=room):
            return found
    return _deep(backend, precision, wide=wide, room=room)


def _deep(backend: Backend, precision: str, *, wide: bool, room: float) -> str:
    """Return at which number of layers the numbers differ first, "" where they agree at many.

    In some models every fourth layer is another one.
    """

    def at(layers: int) -> str:
        return difference_at(backend, layers, precision, wide=wide, room=room)

    if backend.limits.layers:
        return ""
    last = at(DEPTH)
    fewer = range(TRIED[0].layers + 1, DEPTH)
    return last and next(filter(None, map(at, fewer)), last)


def difference_at(
    backend: Backend,
    layers: int,
    precision: str = "float64",
    *,
    wide: bool = True,
    room: float = NEAR,
) -> str:
    """Return how the numbers differ from the reference with so many `layers`, "" for not at all."""
    calls = [(tokens_at(TRIED[0], 5), None, None)]
    return compared(backend, TRIED[0].but(layers=layers), calls, precision, wide=wide, near=room)


def compared(
    backend: Backend,
    sizes: Sizes,
    calls: Iterable[Inputs],
    precision: str = "float64",
    *,
    wide: bool = False,
    near: float = NEAR,
) -> str:
    """Return how the output of one of the `calls` differs from the reference; "" for not at all."""
    given, asked = drawn(backend, sizes), list(calls)
    try:
        outputs = answers(backend, given, asked, precision, wide=wide)
        room = near if wide else ROOM[precision]
        pairs = zip(asked, outputs, strict=True)
        found = (_apart(one, actual, language_model(given, *one), room) for one, actual in pairs)
        wrong = next(filter(None, found), "")
    except Exception as failure:  # code that a user wrote may raise anything
        wrong = f"it raised {summary(failure, 120)}"
    return wrong and f"at {_words(given.sizes)} {wrong}"


def drawn(backend: Backend, sizes: Sizes) -> Setting:
    """Return the setting of the reference at `sizes`, as far as `backend` serves them."""
    fitted, choices = backend.limits.fitted(sizes), Choices.of(backend.choices)
    fitted = fitted.but(layers=min(fitted.layers, backend.limits.layers or fitted.layers))
    if choices.key_heads != "fewer":
        fitted = fitted.but(kv_heads=0)
    parameters = draw("language_model", fitted, choices, np.random.default_rng(1))
    return Setting(fitted, choices, parameters)


def answers(
    backend: Backend,
    given: Setting,
    calls: Iterable[Inputs],
    precision: str = "float64",
    *,
    wide: bool = True,
) -> list[Floats]:
    """Return the outputs for `calls` under the sizes and parameters of `given`.

    Raises whatever the code raises.
    """
    around: AbstractContextManager[None] = widened() if wide else undisturbed()
    with around:
        part = backend.build("language_model", given.sizes, precision=precision)
        part.load({name: one.astype(precision) for name, one in given.parameters.items()})
        return [np.asarray(part(*inputs), dtype=np.float64) for inputs in calls]


def _apart(inputs: Inputs, actual: Floats, expected: Floats, room: float) -> str:
    """Return how an output differs at real tokens, by more than `room` times the largest number."""
    tokens, mask, _ = inputs
    if actual.shape != expected.shape:
        return f"its output has the shape {actual.shape}"
    real = np.ones(tokens.shape, dtype=bool) if mask is None else mask
    apart = np.abs(actual - expected)[real].max()
    if apart <= room * np.abs(expected[real]).max():  # NaN is a difference
        return ""
    return f"the output for {tokens.shape[1]} tokens differs by {apart:.2g}"


def padded(side: str) -> Inputs:
    """Return a call with padding on one `side`, at the first sizes.

    Inside of a text it hides keys from later tokens, and no token sees padding alone.
    """
    columns, real = np.arange(7)[None, :], np.array([7, 4, 2])[:, None]
    if side == "inside":
        return tokens_at(TRIED[0], 7), (columns == 0) | (columns >= 7 - real), None
    return tokens_at(TRIED[0], 7), columns >= 7 - real if side == "left" else columns < real, None


def placed(kind: str) -> Inputs:
    """Return a call with positions of one `kind`, "shared" or "per-sample", at the first sizes."""
    starts = np.array([1, 1, 1] if kind == "shared" else [0, 4, 2])[:, None]
    # With gaps: what is the same for all tokens changes no distance.
    return tokens_at(TRIED[0], 6), None, starts + np.array([0, 1, 3, 4, 6, 7])[None, :]


def tokens_at(sizes: Sizes, length: int) -> Array:
    """Return tokens (3, length) of the vocabulary of `sizes`."""
    rng = np.random.default_rng(length)
    return rng.integers(0, sizes.target_vocabulary, size=(3, length))


def _words(sizes: Sizes) -> str:
    shared = f" and {sizes.kv_heads} of keys" if sizes.kv_heads else ""
    return f"{sizes.layers} layers of width {sizes.d_model} with {sizes.heads} heads{shared}"


HIDES_NOTHING = "no number changes, whatever it hides: nothing uses it"
"""Words on a mask that has no effect."""


def hides_nothing(backend: Backend) -> bool:
    """Say whether a mask of padding has no effect on any output of `backend`."""
    tokens, mask, _ = padded("left")
    try:
        calls = [(tokens, None, None), (tokens, mask, None)]
        plain, hidden = answers(backend, drawn(backend, TRIED[0]), calls)
    except Exception:  # code that a user wrote may raise anything
        return False
    return bool(np.array_equal(plain, hidden))


def refused(of_positions: bool, failures: Sequence[str]) -> str:
    """Return what every call refuses that an argument is tried with, "" where one is accepted.

    Positions may be those of a table that is as long as the text of the call, and a mask that has
    no form of padding may be one of pairs of tokens. The arguments are left out then.
    """
    words = _REFUSED if of_positions else ("it raised ",)
    if not failures or not all(any(word in one for word in words) for one in failures):
        return ""
    if not of_positions:
        return NO_PADDING
    if any("IndexError" in one or "values to unpack" in one for one in failures):
        outside = all("IndexError" in one for one in failures)
        return "later positions raise an error" if outside else ""
    return "positions of a whole text are refused"


_REFUSED = tuple(f"it raised {one}" for one in ("IndexError", "ValueError", "AssertionError"))

NO_PADDING = (
    "masks of padding (B, T) raise an error, and steps with a cache, which may need it, are not "
    "judged"
)
"""The reason that a mask is left out which is none of padding."""
