"""Residual connections that do not take a sublayer, or that hold no norm.

They take the result of the sublayer, or are built with the sublayer. The classes need nothing else
of the suite: reproductions and written adapters contain their source.
"""

import inspect
from collections.abc import Callable
from dataclasses import replace
from inspect import Parameter, Signature
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from attentest.targets.adapt.code import Code
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import ROLES, words
from attentest.targets.adapt.objects.left_out import SUBLAYER
from attentest.targets.adapt.probing import SIZES, undisturbed
from attentest.targets.adapt.reading import Reading, Uncovered
from attentest.targets.adapt.wrappers.wrapper import WIDTH, Read, Wrapper, fitting

COMPONENT = "residual"

_KEPT = words("residual skip shortcut identity res resid inputtensor skipinput residualinput")
"""Names of the input that is passed on, whatever the other one is called."""

_INPUT = words("x input inputs src h hidden")
"""Names of the input next to the result of the sublayer."""

_RESULT = words(
    "y output out sublayeroutput sublayerout sublayery sublayerx sublayerresult branch fx newx "
    "delta update suboutput outputs xsub"
)
"""Names of the result of the sublayer."""


class Applied(nn.Module):
    """Calls `connection` with x as its argument `kept`, and sublayer(x) as `branch`."""

    def __init__(self, connection: nn.Module, width: int, *, kept: str, branch: str) -> None:
        super().__init__()
        self.connection = connection
        self.width, self.kept, self.branch = width, kept, branch

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Any:
        """Return what `connection` makes of x (B, T, D) and the result of the sublayer."""
        return self.connection(**{self.kept: x, self.branch: sublayer(x)})


APPLIED_SOURCE = "\n".join(
    [
        "from collections.abc import Callable",
        "from typing import Any",
        "",
        "from torch import Tensor, nn",
        "",
        "",
        inspect.getsource(Applied),
    ]
)
"""The class as code of its own, for a reproduction or a written adapter."""

_SENTENCE = (
    "assumed that {} is the result of the sublayer and {} its input, as their names say: it is "
    "judged as its caller uses it"
)


class Summed(nn.Module):
    """Calls `connection` with x and the sublayer, which it holds at `path` where that is one.

    `normed` says that a norm follows the sum, which has none.
    """

    def __init__(
        self, connection: nn.Module, width: int, *, path: str = "", normed: bool = False
    ) -> None:
        super().__init__()
        self.connection, self.path = connection, path
        self.norm = nn.LayerNorm(width) if normed else nn.Identity()

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Any:
        """Return what `connection` makes of x (B, T, D), behind the norm if there is one."""
        if not self.path:
            return self.norm(self.connection(x, sublayer))
        held = nn.Identity()
        held.forward = lambda x, *_, **__: sublayer(x)  # type: ignore[method-assign]
        setattr(self.connection, self.path, held)
        return self.norm(self.connection(x))


SUMMED_SOURCE = APPLIED_SOURCE.replace(inspect.getsource(Applied), inspect.getsource(Summed))
"""The class as code of its own."""

_NO_NORM = (
    "assumed that it has no norm of its own, and its caller norms what it gets or returns: the sum "
    "is judged with a layer norm behind it"
)
_BUILT_WITH = "assumed that it is built with its sublayer, {}, and is a residual sum of that"

B = TypeVar("B", bound=Read)


def applied_by_caller(code: Code, reading: Reading, read: Callable[[Code, Reading], B]) -> B | None:
    """Return the backend of a residual sum of two tensors, None where it is none by its numbers."""
    if code.component != COMPONENT or code.construction is None or code.wrapper is not None:
        return None
    if not reading.anyway and _takes_several(code):
        raise Uncovered(
            f"{code.name} is not judged as {COMPONENT}: it takes the first of several results of "
            f"its sublayer, and the sublayer of the spec returns one."
        )
    if reading.strict or reading.arguments:
        return None
    if (around := _summed(code)) is not None:
        return _fitting(code, around, Summed.forward, reading, read)
    if not (two := _kept_and_branch(code.signature)):
        return None
    kept, branch = two
    sentence = _SENTENCE.format(branch, kept)
    options = {"kept": kept, "branch": branch}
    around = Wrapper(Applied, APPLIED_SOURCE, WIDTH, sentence, options)
    return _fitting(code, around, Applied.forward, reading, read)


def _fitting(
    code: Code,
    around: Wrapper,
    forward: Callable[..., Any],
    reading: Reading,
    read: Callable[[Code, Reading], B],
) -> B | None:
    """Return the backend of `code` with a class around it whose method `forward` is called."""
    called = inspect.signature(forward)
    own = called.replace(parameters=list(called.parameters.values())[1:])
    return fitting(replace(code.wrapped(around), signature=own), reading, read)


def _takes_several(code: Code) -> bool:
    """Say whether a sum takes the first result of a sublayer that returns several, and no other."""
    x, _ = _example()
    try:
        with undisturbed():
            built = code.build(SIZES).float().eval()
    except Exception:  # code that a user wrote may raise anything; it is reported later
        return False

    def result(sublayer: Callable[[Tensor], Any]) -> Tensor | None:
        try:
            with undisturbed(), torch.no_grad():
                found = built(x, sublayer)
        except Exception:  # code that a user wrote may raise anything
            return None
        first = found[0] if isinstance(found, tuple) else found
        return first if isinstance(first, Tensor) and first.shape == x.shape else None

    of_pair, of_one = result(lambda x: (_sublayer(x), x.new_zeros(()))), result(_sublayer)
    if of_pair is None or of_one is None:
        return of_pair is not None
    return not torch.allclose(of_one, of_pair, rtol=1e-5, atol=1e-5)


def _summed(code: Code) -> Wrapper | None:
    """Return the class around a sum that holds its sublayer or no norm, None for another one.

    Without a norm, its numbers have to be those of the sum: behind a norm no factor of it shows.
    """
    assert code.construction is not None
    own = [name for name, one in code.construction.fillings.items() if one is SUBLAYER]
    needed = [one for one in code.signature.parameters.values() if one.default is Parameter.empty]
    names = [one.name for one in needed if one.kind is Parameter.POSITIONAL_OR_KEYWORD]
    if len(names) != 2 - len(own) or len(own) > 1:
        return None
    if not own and squashed(names[1]) not in ROLES["sublayer"]:
        return None
    try:
        with undisturbed():
            built, dropping = code.build(SIZES), code.build(SIZES.but(dropout=0.5))
    except Exception:  # code that a user wrote may raise anything; it is reported later
        return None
    if not isinstance(built, nn.Module):
        return None
    held = [path for path, one in built.named_children() if type(one) is nn.Identity]
    path = own[0] if own and own[0] in held else (held[0] if own and len(held) == 1 else "")
    normed = not any(True for _ in built.parameters())
    if bool(path) != bool(own) or not (own or normed):
        return None
    x, added = _example()
    sums = [Summed(one, SIZES.d_model, path=path) for one in (built.eval(), dropping)]
    plain, dropped = (_result(one, x) for one in sums)
    if plain is None or dropped is None or not plain.shape == dropped.shape == x.shape:
        return None  # of images, for instance, of which it drops whole ones in training
    if normed and not torch.allclose(plain, x + added, rtol=1e-5, atol=1e-5):
        return None
    sentence = "; ".join([*map(_BUILT_WITH.format, own), *[_NO_NORM] * normed])
    options = {"path": path} | ({"normed": True} if normed else {})
    return Wrapper(Summed, SUMMED_SOURCE, WIDTH, sentence, options, _OF_NORMS * normed)


_OF_NORMS = ("norm_placement",)
"""The choices that a norm behind a sum decides."""


def _example() -> tuple[Tensor, Tensor]:
    """Return an input (B, T, D), and what the sublayer of a probe makes of it."""
    x = torch.randn(5, 4, SIZES.d_model, generator=torch.Generator().manual_seed(0))
    return x, _sublayer(x)


def _sublayer(x: Tensor) -> Tensor:
    return x.flip(-1) - 0.5 * x.roll(1, -1)


def _result(connection: nn.Module, x: Tensor) -> Tensor | None:
    """Return the result of a call, None where it raises or is no tensor."""
    try:
        with undisturbed(), torch.no_grad():
            found = connection(x, _sublayer)
    except Exception:  # code that a user wrote may raise anything
        return None
    return found if isinstance(found, Tensor) else None


def _kept_and_branch(signature: Signature) -> tuple[str, str] | None:
    """Return the arguments of the input and of the result of the sublayer, by their names."""
    needed = [own for own, one in signature.parameters.items() if one.default is Parameter.empty]
    if len(needed) != 2 or len(signature.parameters) != 2:
        return None
    for kept, branch in (needed, needed[::-1]):
        own, other = squashed(kept), squashed(branch)
        if own in _KEPT or (own in _INPUT and other in _RESULT):
            return kept, branch
    return None
