"""Single precision inside code that is called in double precision."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Annotated, Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attentest.analysis.identify import NONE_FITS, Finding, identify
from attentest.analysis.identify.measure import fits_at, fits_masked_at
from attentest.analysis.identify.reach import ARITHMETICS
from attentest.targets.adapt import trust
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.kernels import KernelWatch
from attentest_spec import Backend, Choices, Limits
from attentest_spec.choices import Value

SINGLE = (
    "assumed that it computes in float32, in part at least, whatever its input is, as measured, "
    "and judged in that: if it is meant to follow its input, this is a mistake, and --strict "
    "reports it"
)


class _Watch(KernelWatch):  # type: ignore[no-untyped-call]
    """Watches the operations of a call for tensors in single precision.

    A kernel that torch does not see may compute in it and fill memory of double precision: the
    digits of its numbers tell.
    """

    def __init__(self) -> None:
        super().__init__()
        self.single = False
        self.rounded = False
        self.mixed = False

    def seen(self, func: Any, given: Sequence[Tensor], made: Sequence[Tensor]) -> None:
        """Note whether one of the tensors, of any shape, is in single precision.

        Attention in double precision that is given a mask in single precision is `mixed`: the
        kernel of torch for a CPU reads other numbers out of such a mask.
        """
        if func._overloadpacket.__name__ in _ATTENTION:
            kinds = {one.dtype for one in given if one.is_floating_point()}
            self.mixed |= {torch.float32, torch.float64} <= kinds
        self.single |= any(one.dtype == torch.float32 and one.numel() for one in [*given, *made])
        self.rounded |= any(_has_fractions(one) for one in made if one.dtype == torch.float32)

    def computed_by_kernels(self, numbers: Sequence[Tensor]) -> None:
        """Note whether tensors of any shape have the digits of single precision."""
        if any(_has_digits_of_single(one) for one in numbers):
            self.single = self.rounded = True


_ATTENTION = ("_scaled_dot_product_flash_attention_for_cpu",)
"""The kernels of attention that do not convert a mask to the precision of the queries."""


def _has_digits_of_single(numbers: Tensor) -> bool:
    """Say whether `numbers` in double precision are those of float32, and not all of bfloat16."""
    if numbers.dtype != torch.float64:
        return False
    finite = numbers[torch.isfinite(numbers)]
    if not torch.equal(finite, finite.float().double()):
        return False
    return not torch.equal(finite, finite.bfloat16().double())


def _has_fractions(numbers: Tensor) -> bool:
    """Say whether finite ones of the `numbers` are not whole, as those of masks and ids are."""
    return bool((torch.isfinite(numbers) & (numbers != numbers.round())).any())


def rounds_to_single(call: Callable[[], object]) -> bool:
    """Say whether `call`, in double precision, computes with numbers of single precision.

    They are seen in its operations, or in its output where they come from outside of torch.
    """
    return _watched(call).single


def _watched(call: Callable[[], object]) -> _Watch:
    """Return what is seen of `call`, nothing where its output is not in double precision."""
    watch = _Watch()
    with undisturbed(), watch:
        output = call()
    if not isinstance(output, Tensor) or output.dtype != torch.float64:
        return _Watch()
    watch.single |= torch.equal(output, output.float().double())
    return watch


Single = tuple[Limits, dict[str, Finding]]
"""Limits without double precision, and what is measured of choices for code within them."""


def in_single(
    backend: Backend,
    call: Callable[[], object],
    findings: Mapping[str, Finding],
    choices: Mapping[str, Value],
) -> Single | None:
    """Return what holds for `backend` in single precision, None where that explains nothing.

    It does where `call` rounds to single precision, and the numbers in that fit, while those in
    double precision, which gave `findings`, do not. `choices` are those that the parameters show.
    Numbers that fit in neither are those of a mistake, and are judged in single precision where
    `call` computes fractions in it: the rounding is no second mistake.
    """
    watch = _watched(call)
    if not watch.single:
        return None
    rest = tuple(one for one in backend.limits.precisions if one != "float64")
    limits = replace(backend.limits, precisions=rest)
    rounded: Backend = replace(backend, limits=limits)  # type: ignore[type-var]
    if watch.mixed:
        return limits, identify(rounded)
    if any(one.status == NONE_FITS and name not in _ROUNDING for name, one in findings.items()):
        again = identify(rounded)
        return (limits, again) if trust.explained(again) or watch.rounded else None
    shown = {name: one.measured for name, one in findings.items() if one.measured is not None}
    known = Choices.of({**choices, **shown})
    uneven = SLOPED if known.relative_bias.startswith("alibi") else UNEVEN
    is_explained = trust.explained(findings)
    if is_explained and _rounds_its_scale(backend, known):
        return limits, identify(rounded)
    if is_explained and _fits_with_masks(backend, known, uneven):
        return None
    kept = {name: one for name, one in findings.items() if one.status != NONE_FITS}
    is_mistaken = watch.rounded and not is_explained
    return (limits, kept) if is_mistaken or fits_at(rounded, known, **uneven) else None


def _fits_with_masks(backend: Backend, known: Choices, sizes: Mapping[str, int]) -> bool:
    """Say whether `known` give the numbers of `backend` at other sizes, as far as it is seen.

    Code may round its scores where it gets a mask, and nowhere else.
    """
    return all(fits(backend, known, **sizes) is not False for fits in (fits_at, fits_masked_at))


def _rounds_its_scale(backend: Backend, known: Choices) -> bool:
    """Say whether scores in float32 are those of a root that is rounded to it, and not of theirs.

    Where the root of a head's width is whole, they show no such rounding.
    """
    rounded = [name for name in ARITHMETICS if known[name] == "float32"]
    if rounded != ["softmax_arithmetic"]:
        return False
    exact = known.but(softmax_arithmetic="as-computed")
    return fits_at(backend, exact, **WHOLE) is True


def is_explained(backend: Backend) -> bool:
    """Say whether the numbers of `backend` are those of options, in double or single precision."""
    rest = tuple(one for one in backend.limits.precisions if one != "float64")
    rounded: Backend = replace(backend, limits=replace(backend.limits, precisions=rest))  # type: ignore[type-var]
    return any(trust.explained(identify(one)) for one in (backend, rounded))


_ROUNDING = ("softmax_arithmetic", "mask_fill", "fully_masked_row")
"""Choices that may fit no option where something else rounds to single precision."""

UNEVEN = {"d_model": 6}
"""A model width whose root is rounded, as that of the measuring width is not."""

WHOLE = {"d_model": 8, "heads": 2}
"""Sizes at which the root of a head's width is whole."""

SLOPED = {"d_model": 24, "heads": 12}
"""Sizes at which slopes of heads are rounded as well: those of fewer than 9 may be powers of 2."""


@contextmanager
def in_double() -> Iterator[None]:
    """Make double precision the default of torch, which constants of code have."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


_WIDER = {torch.float32: torch.float64, torch.complex64: torch.complex128}


class _Widened(TorchFunctionMode):
    """Computes in double precision whatever code asks for in single precision.

    What a model computes is read without the rounding that hides it; rounding is judged later.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Call `func` with double precision in the place of single precision."""
        if func is Tensor.float:
            return args[0].double()
        if getattr(func, "__name__", "") in _GROUPED and args[0].dtype == torch.float64:
            return _grouped(*args, **(kwargs or {}))
        named = {name: _wider(one) for name, one in (kwargs or {}).items()}
        return func(*map(_wider, args), **named)


_GROUPED = ("grouped_mm", "_grouped_mm")
"""The products of torch for groups of rows, as for those of experts: they refuse float64."""


def _grouped(
    rows: Tensor, matrices: Tensor, offs: Tensor | None = None, **_: Any
) -> Annotated[Tensor, "N F"]:
    """Return the product of each group of `rows` (N, D) and its one of the `matrices` (G, D, F)."""
    if offs is None or rows.dim() != 2 or matrices.dim() != 3:
        return rows @ matrices
    ends = offs.tolist()
    starts = [0, *ends[:-1]]
    groups = zip(starts, ends, matrices, strict=True)
    held = [rows[start:end] @ one for start, end, one in groups]
    rest = rows.new_zeros(len(rows) - ends[-1], matrices.shape[-1])
    return torch.cat([*held, rest])


def _wider(value: Any) -> Any:
    return _WIDER.get(value, value) if isinstance(value, torch.dtype) else value


@contextmanager
def widened() -> Iterator[None]:
    """Compute in double precision, whatever precision code asks for."""
    with in_double(), undisturbed(), _Widened():
        yield


def in_precision_of(*, doubled: bool, widened_too: bool) -> AbstractContextManager[None]:
    """Return what code is called in that computes in double precision only if it is helped."""
    if widened_too:
        return widened()
    return in_double() if doubled else nullcontext()
