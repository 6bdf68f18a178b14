"""The design choices on which honest implementations differ, and the paper's own.

A choice is one entry in :data:`CHOICES` and one field of :class:`Choices`; a new option is one
entry here and one line in an oracle. The first option is the one that is judged by when nothing
is declared. Where the paper is silent, every listed option conforms and is reported.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from math import isfinite
from typing import Any

from attentest_spec.names import require

Value = str | float


@dataclass(frozen=True)
class Option:
    """One way to settle a choice: its name and what it means in one phrase."""

    name: str
    meaning: str


@dataclass(frozen=True)
class Choice:
    """A design axis: its options, where the paper stands, and the clause that judges it.

    `paper` is the paper's option or None where the paper is silent. `number` says which numbers
    are allowed in place of an option's name ("" for none).
    """

    name: str
    question: str
    options: tuple[Option, ...]
    paper: str | None
    clause: str
    source: str
    why: str
    number: str = ""
    default: Value = ""

    @property
    def first(self) -> Value:
        """The value that is judged by when a backend declares nothing."""
        return self.default if self.default != "" else self.options[0].name

    def check(self, value: Value) -> Value:
        """Return `value` when it is an option, and raise a ValueError that lists them if not."""
        if self.number and isinstance(value, int | float) and not isinstance(value, bool):
            if not isfinite(value):
                raise ValueError(
                    f"The choice {self.name} must be a finite number ({self.number}), "
                    f"and {value!r} is not."
                )
            return float(value)
        names = [option.name for option in self.options]
        if not isinstance(value, str) or value not in names:
            allowed = ", ".join(names + ([self.number] if self.number else []))
            raise ValueError(
                f"The choice {self.name} cannot be {value!r}; it is one of: {allowed}."
            )
        return value


def _choice(name: str, question: str, *options: tuple[str, str], **rest: Any) -> Choice:
    return Choice(name, question, tuple(Option(*option) for option in options), **rest)


_ALL = (
    _choice(
        "norm_placement",
        "Does the layer norm come after the residual sum or before the sublayer?",
        ("post", "norm(x + sublayer(x))"),
        ("pre", "x + sublayer(norm(x))"),
        paper="post",
        clause="encoder.norm-placement",
        source="section 3.1",
        why="Decides how deep a stack trains without warm-up, and whether the residual path is "
        "an identity; weights do not carry over between the two.",
    ),
    _choice(
        "final_norm",
        "Does a stack end in one more layer norm?",
        ("none", "the last layer's output is the stack's"),
        ("present", "one more norm after the last layer"),
        paper="none",
        clause="encoder.final-norm",
        source="section 3.1",
        why="A pre-norm stack needs it to bound its output; after post-norm it is one norm twice.",
    ),
    _choice(
        "norm_epsilon_place",
        "Where does the layer norm add its epsilon?",
        ("inside-root", "(x - mean) / sqrt(variance + epsilon)"),
        ("added-to-deviation", "(x - mean) / (deviation + epsilon)"),
        paper=None,
        clause="layer_norm.epsilon-place",
        source="section 3.1 names layer normalisation and gives no formula",
        why="Equal at unit scale; far apart where activations are small.",
    ),
    _choice(
        "norm_variance",
        "Does the layer norm divide its squared deviations by n or by n - 1?",
        ("biased", "divide by n"),
        ("unbiased", "divide by n - 1"),
        paper=None,
        clause="layer_norm.variance",
        source="section 3.1 names layer normalisation and gives no formula",
        why="13 % apart at width 4, 0.1 % at width 512: invisible in large models, and still "
        "another function.",
    ),
    _choice(
        "norm_epsilon",
        "How large is the layer norm's epsilon?",
        paper=None,
        clause="layer_norm.epsilon",
        source="section 3.1 names layer normalisation and gives no formula",
        why="A wrong one shows on small activations and in half precision, where 1e-12 is zero.",
        number="a number of at least 0",
        default=1e-5,
    ),
    _choice(
        "norm_sharing",
        "Has every sublayer a layer norm of its own?",
        ("separate", "one norm per sublayer"),
        ("shared", "one norm for all sublayers of a stack"),
        paper="separate",
        clause="encoder.norm-sharing",
        source="section 3.1",
        why="Sharing saves few parameters and couples sublayers of unlike scale; by accident it "
        "leaves another norm untrained.",
    ),
    _choice(
        "embedding_scale",
        "Are embeddings multiplied by the square root of the model width?",
        ("sqrt-d", "table row times sqrt(d_model)"),
        ("none", "the plain table row"),
        paper="sqrt-d",
        clause="embedding.scale",
        source="section 3.4",
        why="Sets the balance of token against position in the sum.",
    ),
    _choice(
        "positional_encoding",
        "What is added to an embedding to tell its position?",
        ("interleaved", "sine on even columns, cosine on odd ones, exponent 2i/d"),
        ("halves", "sines in the first half of the columns, cosines in the second"),
        ("doubled-exponent", "interleaved with the exponent 4i/d"),
        ("learned", "a trained table, one row per position"),
        ("none", "nothing is added"),
        paper="interleaved",
        clause="positional_encoding.formula",
        source="section 3.5",
        why="Halves are a permutation of columns; the doubled exponent wastes half of the "
        "frequencies; a learned table ends at its last row.",
    ),
    _choice(
        "head_width",
        "How wide is one attention head?",
        ("d/h", "the model width divided by the number of heads"),
        ("d", "as wide as the model"),
        paper="d/h",
        clause="multi_head_attention.head-width",
        source="section 3.2.2",
        why="Heads as wide as the model cost h times the parameters and another scale.",
    ),
    _choice(
        "mask_fill",
        "What does a masked score become before the softmax?",
        ("exact", "minus infinity, or anything that leaves weight exactly 0"),
        paper="exact",
        clause="attention.masking-exact",
        source="section 3.2.3",
        why="A finite fill that real scores can fall below lets a masked key win.",
        number="a negative number, the fill itself",
    ),
    _choice(
        "fully_masked_row",
        "What does a query see that may attend to nothing?",
        ("unspecified", "no promise"),
        ("uniform", "the mean of all values"),
        ("zero", "zeros"),
        ("nan", "not a number"),
        paper=None,
        clause="attention.fully-masked-row",
        source="not in the paper",
        why="NaN spreads through gradients even from rows that are thrown away.",
    ),
    _choice(
        "activation",
        "Which activation stands between the two linear maps of the feed-forward network?",
        ("relu", "max(0, x)"),
        ("gelu", "x times the normal distribution function, exact form"),
        ("silu", "x times sigmoid(x)"),
        paper="relu",
        clause="feed_forward.activation",
        source="section 3.3, equation 2",
        why="Close at large values, different around zero; weights do not carry over.",
    ),
    _choice(
        "projection_bias",
        "Do the query, key, value and output projections of attention have a bias?",
        ("none", "x W"),
        ("present", "x W + b"),
        ("output-alone", "x W for query, key and value, x W + b for the output"),
        paper="none",
        clause="multi_head_attention.projection-bias",
        source="section 3.2.2 writes the projections as matrices",
        why="The key bias never changes a softmax; the other three do.",
    ),
    _choice(
        "output",
        "What does the generator return?",
        ("probabilities", "softmax over the vocabulary"),
        ("log-probabilities", "logarithm of the softmax"),
        ("logits", "the linear map alone"),
        paper="probabilities",
        clause="generator.output",
        source="section 3.4",
        why="A loss that applies its own softmax to probabilities trains badly and says nothing.",
    ),
    _choice(
        "tying",
        "Which of the three vocabulary matrices are one?",
        ("all-three", "both embeddings and the generator"),
        ("target-and-output", "target embedding and generator"),
        ("none", "three matrices"),
        paper="all-three",
        clause="model.tying",
        source="section 3.4",
        why="Counts of parameters, and what a gradient step on one of them does to the others.",
    ),
)

CHOICES: Mapping[str, Choice] = {choice.name: choice for choice in _ALL}


@dataclass(frozen=True, kw_only=True)
class Choices:
    """One value for every choice; what is not given is the first option.

    Raises ValueError for a value that is no option, and :class:`~attentest_spec.names.UnknownName`
    (from :meth:`of`) for a name that is no choice.
    """

    norm_placement: str = "post"
    final_norm: str = "none"
    norm_epsilon_place: str = "inside-root"
    norm_variance: str = "biased"
    norm_epsilon: float = 1e-5
    norm_sharing: str = "separate"
    embedding_scale: str = "sqrt-d"
    positional_encoding: str = "interleaved"
    head_width: str = "d/h"
    mask_fill: Value = "exact"
    fully_masked_row: str = "unspecified"
    activation: str = "relu"
    projection_bias: str = "none"
    output: str = "probabilities"
    tying: str = "all-three"

    def __post_init__(self) -> None:
        """Check every value against the options of its choice."""
        for field in fields(self):
            value = CHOICES[field.name].check(getattr(self, field.name))
            object.__setattr__(self, field.name, value)
        if self.norm_epsilon < 0:
            raise ValueError(f"norm_epsilon must be at least 0, and {self.norm_epsilon} is not.")
        if isinstance(self.mask_fill, float) and self.mask_fill >= 0:
            raise ValueError(f"mask_fill must be negative, and {self.mask_fill} is not.")

    @classmethod
    def of(cls, declared: Mapping[str, Value]) -> "Choices":
        """Build the full set from what a backend declared."""
        for name in declared:
            require("choice", name, CHOICES)
        return cls(**dict(declared))  # type: ignore[arg-type]  # __post_init__ checks each value

    def but(self, **changes: Value) -> "Choices":
        """Return a copy with some choices changed."""
        return replace(self, **changes)  # type: ignore[arg-type]  # __post_init__ checks each value

    def __getitem__(self, name: str) -> Value:
        """Return the value of the choice `name`."""
        require("choice", name, CHOICES)
        value: Value = getattr(self, name)
        return value

    def as_dict(self) -> dict[str, Value]:
        """Return every choice with its value, in the order of :data:`CHOICES`."""
        return asdict(self)


PAPER = Choices()

__all__ = ["CHOICES", "PAPER", "Choice", "Choices", "Option", "Value"]
