"""The contract that a backend meets; only NumPy crosses it.

Conventions: batch first; token ids int64; masks boolean, True = may be attended, broadcastable to
(batch, heads, queries, keys); linear weights as (out, in).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

from attentest_spec.choices import Value
from attentest_spec.precision import PRECISIONS
from attentest_spec.setting import Array
from attentest_spec.sizes import Sizes

Input = Array | int | None
Output = Any
"""One array, or a tuple of arrays of which some may be None (weights that are not returned)."""

MASK_KINDS = ("none", "padding", "causal", "per-sample", "per-head")
"""The kinds of masks: absent, (B, 1, 1, K), (1, 1, Q, K), (B, 1, Q, K) and (B, H, Q, K)."""

PADDED_INPUTS = ("mask", "source", "target")
"""The inputs with padding: masks of attention and of layers, and the tokens of a whole model."""

POSITION_KINDS = ("none", "offset", "shared", "per-sample")
"""The kinds of positions that are given: absent, consecutive from one number, the same for all
sequences, and of every sequence its own; each (B, L) but the first."""

CAPABILITIES = (
    "gradient",  # vjp
    "mode",  # train and eval
    "state",  # a state that can be saved and loaded
    "copy",  # deep copies and pickles
    "move",  # to another precision, and to a device without memory
    "inventory",  # lists of trained and of fixed arrays
    "globals",  # a look at the framework's global state
)
"""The capabilities that depend on a framework; a backend says which of them it has."""


class Unsupported(Exception):
    """Raised by a backend for what it never claimed to support; the verdict is `absent`."""


class NoParameterMap(Unsupported):
    """Raised by a part that is to load parameters, and does not say which of its own they are."""

    def __init__(self) -> None:
        super().__init__("it has no parameter map")


@dataclass(frozen=True)
class Gradient:
    """A vector-Jacobian product: the output and the gradients it was pulled back to.

    `inputs` holds one array per float input (None for masks, tokens and absent inputs).
    `parameters` maps canonical names to arrays; a tied parameter carries the whole gradient under
    each of its names.
    """

    output: Array
    inputs: tuple[Array | None, ...]
    parameters: Mapping[str, Array]


@dataclass(frozen=True)
class Step:
    """One call of a part inside one call of its component.

    `part` is its canonical name, such as `encoder.layers.0.self_attention`; `call` counts from 0
    how often that part was called before. `inputs` are the arrays it was given, in its own order.
    """

    part: str
    call: int
    inputs: tuple[Array, ...]
    output: Array


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of what a backend supports; inputs are drawn inside, and None means no limit.

    The list is closed: `layers`, `heads` and `length` are the largest supported, `fewest_heads` is
    the smallest number of heads that it is one design with, `one_key_head` is True where all heads
    share one head of keys and values and no size says how many there are, `precisions` and
    `masks` (see :data:`MASK_KINDS`) the supported kinds, `memory_masks` those of the mask of a
    decoder's memory where they are others than `masks`, `any_device` is False where masks are made
    on the CPU whatever the device of the tokens is, or where what is built stays on the device that
    it is built for, `dropout` is False where there is none,
    `odd_width` is False where an odd model width is refused, `least_width` is the smallest model
    width that is not, `least_head_width` the smallest width of a head
    that is not, `cross` is False where multi-head
    attention has one input, which is query, key and value at once, and `inner` is the width of a
    feed-forward network's inner layer as a multiple of the model's, rounded down, where it is
    fixed, and `inner_width` that width itself where it is a constant. `inner_multiple` is the
    number to a multiple of which that product is rounded up.
    `own_pads` and `own_vocabularies` are False where source and target have one pad id, and one
    vocabulary; `pad` is the pad id where it is fixed; `trained_pad` is False where the row of the
    pad id in an embedding gets no gradient, `untrained` are other ids whose rows get none, and
    `negative_ids` is True where a negative id is a marker whose row is zeros. `rounded_heads` is
    True where a width that the heads do not divide is no error: each head has its share of it,
    rounded down, and the projections use all of it.
    `fixed_dropout` is True where some rate of dropout is not set by the sizes: training is random
    at a rate of 0, too. `smoothing` is the rate of label
    smoothing where the loss has a fixed one, 0 where it has none. `rate_factor` is False where a
    schedule of learning rates has no factor, which is 1 then. `single` are the components that
    compute in float32 where they are given float64: these are judged in float32.
    `positions` are the supported kinds of positions of tokens (see :data:`POSITION_KINDS`).
    `hypotheses` is the number that a beam search returns where it is fixed, 1 for the best alone,
    and `alpha` is the exponent of its length penalty where that is fixed. `shared_inner` is the
    inner width of the shared one among experts as a multiple of theirs, where that is fixed.
    `right_padded` are the inputs (see :data:`PADDED_INPUTS`) whose padding is at the end alone:
    masks that keep the first keys of each row, as lengths do, and tokens with no padding between
    them. `padded_targets` is False where a loss counts every target: it is given none that is
    padding. `initial_values` is False where another initialises the parameters.
    `one_shape` is True where queries, keys and values of attention have one shape.
    """

    layers: int | None = None
    heads: int | None = None
    length: int | None = None
    precisions: Collection[str] = tuple(PRECISIONS)
    masks: Collection[str] = MASK_KINDS
    dropout: bool = True
    odd_width: bool = True
    cross: bool = True
    inner: float | None = None
    inner_width: int | None = None
    inner_multiple: int = 1
    own_pads: bool = True
    own_vocabularies: bool = True
    pad: int | None = None
    trained_pad: bool = True
    untrained: Collection[int] = ()
    fixed_dropout: bool = False
    fewest_heads: int = 1
    smoothing: float | None = None
    rate_factor: bool = True
    single: Collection[str] = ()
    positions: Collection[str] = POSITION_KINDS
    hypotheses: int | None = None
    alpha: float | None = None
    shared_inner: float | None = None
    right_padded: Collection[str] = ()
    padded_targets: bool = True
    initial_values: bool = True
    one_shape: bool = False
    memory_masks: Collection[str] | None = None
    any_device: bool = True
    negative_ids: bool = False
    least_width: int = 1
    least_head_width: int = 1
    rounded_heads: bool = False
    one_key_head: bool = False

    @property
    def finest(self) -> str:
        """The most precise supported format (float64 where none is)."""
        return next((one for one in PRECISIONS if one in self.precisions), "float64")

    def masks_of(self, role: str) -> Collection[str]:
        """Return the supported kinds of the mask `role`; "source_mask" is that of a memory."""
        own = self.memory_masks if role == "source_mask" else None
        return self.masks if own is None else own

    def precision_of(self, component: str, asked: str) -> str:
        """Return the precision that `component` is judged in where `asked` is asked for."""
        return "float32" if asked == "float64" and component in self.single else asked

    def fitted(self, sizes: Sizes) -> Sizes:
        """Return `sizes` inside the limits: an odd width is doubled where none is supported.

        So is the model's where that of a head is odd: heads that are turned have pairs of columns.
        One that fewer heads than there must be would divide, and they would not, is multiplied, and
        so is one that is too small.
        Where the two sides share a pad id or a vocabulary, it is that of the source.
        """
        fitted = sizes
        if sizes.heads < self.fewest_heads:
            width = sizes.d_model * (
                1 if sizes.d_model % self.fewest_heads == 0 else self.fewest_heads
            )
            fitted = fitted.but(heads=self.fewest_heads, d_model=width)
        head = fitted.d_model // max(1, fitted.heads)
        if 0 < head < self.least_head_width:
            fitted = fitted.but(d_model=fitted.d_model * -(-self.least_head_width // head))
        if 0 < fitted.d_model < self.least_width:
            fitted = fitted.but(d_model=fitted.d_model * -(-self.least_width // fitted.d_model))
        is_odd = fitted.d_model % 2 or fitted.d_model % (2 * fitted.heads) == fitted.heads
        if not self.odd_width and is_odd:
            fitted = fitted.but(d_model=2 * fitted.d_model)
        if self.one_key_head:
            fitted = fitted.but(kv_heads=1)
        if self.inner is not None:
            part = Fraction(self.inner).limit_denominator(64)  # of thirds, as of whole numbers
            multiples = -(-int(part * fitted.d_model) // self.inner_multiple)
            fitted = fitted.but(d_ff=multiples * self.inner_multiple)
        if self.inner_width is not None:
            fitted = fitted.but(d_ff=self.inner_width)
        if self.shared_inner is not None:
            fitted = fitted.but(shared_inner=int(self.shared_inner * fitted.d_ff))
        if self.pad is not None:
            fitted = fitted.but(source_pad=self.pad, target_pad=self.pad)
        if self.alpha is not None:
            fitted = fitted.but(alpha=self.alpha)
        if self.smoothing is not None:
            fitted = fitted.but(smoothing=self.smoothing)
        if not self.own_pads:
            fitted = fitted.but(target_pad=fitted.source_pad)
        if not self.own_vocabularies:
            fitted = fitted.but(target_vocabulary=fitted.source_vocabulary)
        if not self.rate_factor:
            fitted = fitted.but(factor=1.0)
        return fitted


@runtime_checkable
class Part(Protocol):
    """One component, built at given sizes and ready to be called, in evaluation mode."""

    capabilities: Collection[str]

    def __call__(self, *inputs: Input, method: str = "") -> Output:
        """Compute the component, or one of its named methods (`encode`, `decode` of a model)."""

    def load(self, parameters: Mapping[str, Array]) -> None:
        """Set the parameters, by canonical names and in canonical shapes; refuse any others."""

    def export(self) -> dict[str, Array]:
        """Return copies of the parameters, by canonical names and in canonical shapes."""

    def vjp(self, inputs: tuple[Input, ...], cotangent: Array) -> Gradient:
        """Pull `cotangent` (shaped as the output) back to the inputs and the parameters."""

    def train(self) -> None:
        """Switch to training mode: dropout is active."""

    def eval(self) -> None:
        """Switch to evaluation mode: no randomness."""

    def reloaded(self) -> "Part":
        """Return a fresh build that has loaded this one's saved state (capability `state`)."""

    def copied(self, how: str) -> "Part":
        """Return a copy made by `how`: "deepcopy" or "pickle" (capability `copy`).

        Raises Unsupported where it cannot be pickled.
        """

    def moved(self, precision: str = "", device: str = "") -> "Part":
        """Return this part moved to another precision or device (capability `move`)."""

    def placed(self, inputs: tuple[Input, ...], device: str) -> str:
        """Return the device of the output for inputs on `device` (capability `move`).

        The inputs have the shapes of a call.
        """

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        """Describe what it holds (capability `inventory`).

        `parameters` and `buffers` map the backend's own names to (shape, dtype, device), and
        parameters to `trained` too, which is False for a frozen one; `loose` names other arrays;
        `modes` maps submodules to whether they are in training mode; `state` maps the saved names
        to shapes.
        """

    def global_state(self) -> Mapping[str, Any]:
        """Return comparable values of the framework's global state (capability `globals`).

        "random state" is the one value that building always changes, so that a seed that is set
        to its former value is noticed. "changed" names the settings and functions that building or
        calling this part has changed, even if they were set back since.
        """


@runtime_checkable
class Stateful(Protocol):
    """A part whose state can be read and set by the backend's own names, as a checkpoint has them.

    This is optional: other backends take part in everything but conversion.
    """

    def state(self) -> dict[str, Array]:
        """Return copies of all that it saves, in its own shapes; tied names share one array."""

    def restore(self, state: Mapping[str, Array]) -> None:
        """Set everything it saves; ValueError for missing and extra names and other shapes."""


@runtime_checkable
class Traceable(Protocol):
    """A part that can list the calls of the parts inside it.

    This is optional: other backends are compared by their outputs alone.
    """

    def steps(self, inputs: tuple[Input, ...]) -> list[Step]:
        """Call it, and return the calls of the parts inside, in the order in which they finished.

        The inputs have the shapes of a call. Parts that the framework cannot observe are left out.
        """


@runtime_checkable
class Counted(Protocol):
    """A part that can count the floating-point operations of a call.

    This is optional: the cost of other parts comes from formulas and from the clock alone.
    """

    def flops(self, inputs: tuple[Input, ...], cotangent: Array | None = None) -> int:
        """Count those of the matrix products of one call; a multiply-add counts as two.

        The inputs have the shapes of a call. With a `cotangent`, shaped as the output, those of
        pulling it back are counted as well, as :meth:`Part.vjp` does.
        """


@runtime_checkable
class Incremental(Protocol):
    """An optimiser that can be given one gradient after the other, as a training does.

    This is optional: other backends are trained with the spec's optimiser.
    """

    def updates(self, parameters: Array, feed: Iterable[tuple[Array, float]]) -> Iterator[Array]:
        """Yield the parameters after each update, of the shape (N) as all arrays here.

        `parameters` are those at the beginning, and `feed` yields gradients with their rates. Each
        pair is read when its update is asked for. Raises Unsupported where all gradients have
        to be there at once.
        """


@runtime_checkable
class Backend(Protocol):
    """An implementation behind the contract: what it provides, declares and builds."""

    @property
    def name(self) -> str:
        """The name it goes by in commands and tables."""

    @property
    def title(self) -> str:
        """The component in one line."""

    @property
    def choices(self) -> Mapping[str, Value]:
        """The declared choices; what is left out is the paper's option."""

    @property
    def limits(self) -> Limits:
        """The limits of what it supports."""

    @property
    def components(self) -> Collection[str]:
        """The names of the components it provides."""

    def build(
        self, component: str, sizes: Sizes, *, precision: str = "float64", device: str = "cpu"
    ) -> Part:
        """Build `component` at `sizes`, freshly initialised.

        Raises ValueError, with the numbers in its text, for impossible sizes.
        """


@runtime_checkable
class Configurable(Protocol):
    """A backend that can be built under any design choices.

    This is optional: other backends take part in everything but sweeps over choices.
    """

    def under(self, choices: Mapping[str, Value]) -> Backend:
        """Return it with `choices` in the place of what it declares; the others stay.

        Raises ValueError for choices that cannot be together, and Unsupported for those that it
        does not offer.
        """
