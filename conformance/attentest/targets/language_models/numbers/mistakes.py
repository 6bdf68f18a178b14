"""Mistakes whose numbers a call may have in the place of those of a formula."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from attentest_spec import Sizes
from attentest_spec.choices import Value
from attentest_spec.setting import Floats, Mask

Options = dict[str, Value]

SUBLAYERS = ("self_attention", "feed_forward")


_SUBJECT = re.compile(r" (?:that|of which|whose|without|with|from|in|by|before|behind)\b")
"""The words that follow on the name of what is wrong."""


@dataclass(frozen=True)
class Mistake:
    """A mistake, in words: what the numbers are those of.

    `scale` is the factor of the scores at some sizes, and `before` one that they are computed with
    on the way there, if that tells it from a design. `ahead` is the number of tokens after its own
    that a query sees (-1: all of them), `bare` are the sublayers without a residual path. `normed`
    says of sublayers what their input is in the place of its norm: the norm of another sublayer, or
    "" for none. `keys` are the options with which keys are turned, from those of queries, `angles`
    those by which their angles are laid out, where these are others, which is so of queries too
    where it is of `both`. `places` is how often sines are added to the embeddings. Where it is
    `over_queries` the weights of a key sum to 1, and where
    it is `unmerged` heads are not transposed back. Heads of what is `tiled` ("key", "value") are
    repeated all in turn, and not each in a row. Where it is `lifted` the bias of distances has the
    other sign. What is `early` has a residual path from the input of its block, and what is `inner`
    one from its own normalised input. Where queries are `unturned` the keys alone are turned by
    their positions, and where values are `turned` these are, too. Where it is `exchanged` the names
    of a gate and of the map that it multiplies say the other way round. A design computes the same
    where the mistake is not `sure`; one that is `of_texts` is sure in a model that continues texts.
    `masked` makes scores of scaled ones and of what is seen, where this does not hide later tokens.
    Where it is `deviating`, layer norms have the deviation in the place of the variance.
    """

    words: str
    scale: Callable[[Sizes], float] | None = None
    before: Callable[[Sizes], float] | None = None
    ahead: int = 0
    bare: Collection[str] = ()
    normed: Mapping[str, str] = field(default_factory=dict)
    keys: Callable[[Options], Options] | None = None
    angles: Callable[[Options], Options] | None = None
    both: bool = False
    places: int = 1
    over_queries: bool = False
    unmerged: bool = False
    tiled: Sequence[str] = ()
    lifted: bool = False
    early: Collection[str] = ()
    inner: Collection[str] = ()
    unturned: bool = False
    turned: bool = False
    exchanged: bool = False
    masked: Callable[[Floats, Mask], Floats] | None = None
    deviating: bool = False
    sure: bool = True
    of_texts: bool = False

    def options(self, sizes: Sizes) -> dict[str, Value]:
        """Return the choices that give its numbers."""
        found: dict[str, Value] = {"attention_causality": "by-mask"} if self.ahead else {}
        return found if self.scale is None else found | {"score_scale": self.scale(sizes)}

    def declared(self, sizes: Sizes) -> str:
        """Return the choice that gives its numbers at all sizes, as it is declared, "" for none."""
        if self.scale is None or self.scale(sizes) != self.scale(sizes.but(heads=1)):
            return ""
        return f"score_scale={self.scale(sizes):g}"

    def seen(self, length: int) -> Mask:
        """Return which keys every query sees, (1, 1, length, length)."""
        ahead = self.ahead if self.ahead >= 0 else length
        return np.tril(np.ones((1, 1, length, length), dtype=bool), ahead)

    @property
    def is_by_hand(self) -> bool:
        """Whether no choices and no mask give its weighted values."""
        turns = self.keys is not None or self.unturned or self.turned
        by_mask = self.over_queries or self.masked is not None
        return turns or by_mask or self.lifted or bool(self.tiled)

    @property
    def subject(self) -> str:
        """The numbers that are wrong, in words."""
        return _SUBJECT.split(self.words)[0].removeprefix("a ")

    @property
    def extent(self) -> str:
        """The place in words, "" for a place that there is one of."""
        return ", in every layer" if self.places == 1 else ""


def _width(sizes: Sizes) -> int:
    return sizes.d_model // sizes.heads


ALL_SEEN = Mistake(
    "scores of which later tokens are not hidden", ahead=-1, sure=False, of_texts=True
)
"""An encoder computes this: whether it is a mistake is said by what the model is meant for."""

_OTHER_SCALES: Mapping[str, Callable[[Sizes], float]] = {
    "not divided by sqrt(d_k)": lambda sizes: 1.0,
    "divided by sqrt(d_model)": lambda sizes: sizes.d_model**-0.5,
}
"""Scales that are next to another mistake of the scores or weights."""

OF_SCORES = (
    # Published models do not scale, or scale by the width: these are designs as well.
    Mistake("scores that are not divided by sqrt(d_k)", lambda sizes: 1.0, sure=False),
    Mistake("scores that are divided by sqrt(d_model)", lambda sizes: sizes.d_model**-0.5),
    Mistake(
        "scores that are divided by sqrt(d_k) twice",
        lambda sizes: 1.0 / _width(sizes),
        before=lambda sizes: _width(sizes) ** -0.5,
    ),
    Mistake("scores that are divided by d_k", lambda sizes: 1.0 / _width(sizes), sure=False),
    Mistake("scores that are multiplied by sqrt(d_k)", lambda sizes: _width(sizes) ** 0.5),
    ALL_SEEN,
    Mistake("scores of which the next token is not hidden", ahead=1),
    Mistake("weights whose softmax is over the queries", over_queries=True),
    Mistake(
        "scores to which 1 is added at later tokens, which does not hide them",
        masked=lambda scores, seen: scores + ~seen,
    ),
    Mistake(
        "scores to which 1 is added at all but later tokens, which does not hide these",
        masked=lambda scores, seen: scores + seen,
    ),
    Mistake(
        "scores that are 0 at later tokens, which does not hide them",
        masked=lambda scores, seen: scores * seen,
    ),
    *(
        Mistake(
            f"{one}s whose heads are repeated all in turn, and not each in a row as {other}s are",
            tiled=(one,),
        )
        for one, other in (("key", "value"), ("value", "key"))
    ),
    *(
        Mistake(
            f"scores that are {words}, under a softmax over the queries", one, over_queries=True
        )
        for words, one in _OTHER_SCALES.items()
    ),
    *(
        Mistake(
            f"scores of which later tokens are not hidden, and that are {words}",
            one,
            ahead=-1,
            sure=False,
            of_texts=True,
        )
        for words, one in _OTHER_SCALES.items()
    ),
    # Weights that are trained so are those of a model with its heads in another order.
    Mistake(
        "keys and values whose heads are repeated all in turn, and not each in a row",
        tiled=("key", "value"),
        sure=False,
    ),
)


LIFTED = Mistake("scores whose bias of distances has the other sign", lifted=True)


def _turned_otherwise(choice: str, *both: str) -> Callable[[Options], Options]:
    """Return what gives options with the other of two options of `choice`."""
    return lambda options: {**options, choice: both[options[choice] == both[0]]}


_OTHER_PAIRS = _turned_otherwise("rotary_pairs", "halves", "adjacent")

OF_KEYS = (
    Mistake(
        "keys that are not turned by their positions, as queries are",
        keys=lambda options: {**options, "attention_rotary": "none"},
    ),
    Mistake(
        "keys that are turned in the other direction than queries",
        keys=_turned_otherwise("rotary_direction", "forward", "backward"),
    ),
    Mistake(
        "keys that are turned in other pairs of columns than queries",
        keys=_OTHER_PAIRS,
    ),
    Mistake(
        "keys that are turned in other pairs of columns than queries, by the angles of those",
        keys=_OTHER_PAIRS,
        angles=lambda options: options,
    ),
    Mistake(
        "keys that are turned by angles for other pairs of columns",
        keys=lambda options: options,
        angles=_OTHER_PAIRS,
    ),
)

OF_BOTH = (
    Mistake(
        "queries and keys that are turned by angles for other pairs of columns",
        keys=lambda options: options,
        angles=_OTHER_PAIRS,
        both=True,
    ),
)

OF_VALUES = (
    Mistake("values that are turned by their positions, as queries and keys are", turned=True),
    Mistake(
        "values that are turned by their positions, and keys that are not",
        keys=lambda options: {**options, "attention_rotary": "none"},
        turned=True,
    ),
)

OF_QUERIES = (
    Mistake("queries that are not turned by their positions, as keys are", unturned=True),
)

UNMERGED = Mistake("heads that are merged without being transposed back", unmerged=True)

EXCHANGED = Mistake(
    "gates that multiply as they are, with the activation on the other map", exchanged=True
)
"""The names of both maps say which is the gate: by numbers alone either may be."""

PLACES_TWICE = Mistake("sines of positions that are added twice", places=2)

WITHOUT_RESIDUAL: Mapping[str, tuple[Mistake, ...]] = {
    "self_attention": (
        Mistake("attention without its residual path", bare=SUBLAYERS[:1]),
        Mistake("sublayers without their residual paths", bare=SUBLAYERS),
        Mistake(
            "attention whose residual path begins at its normalised input", inner=SUBLAYERS[:1]
        ),
    ),
    "feed_forward": (
        Mistake("a network without its residual path", bare=SUBLAYERS[1:]),
        Mistake(
            "a network whose residual path begins at the input of its block", early=SUBLAYERS[1:]
        ),
        Mistake(
            "a network whose residual path begins at its normalised input", inner=SUBLAYERS[1:]
        ),
    ),
}
"""Mistakes by the sublayer whose sum the call does not compute."""

DEVIATING = Mistake(
    "layer norms with the deviation in the place of the variance", places=0, deviating=True
)

WITHOUT_NORM = (
    Mistake("a network whose input is not normalised", normed={"feed_forward": ""}),
    Mistake(
        "a network whose input has the norm of attention",
        normed={"feed_forward": "self_attention"},
    ),
    Mistake("attention whose input is not normalised", normed={"self_attention": ""}),
)
"""Mistakes of models with norms that nothing depends on: they are held, and not used."""
