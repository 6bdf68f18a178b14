"""Code without an output projection, or without some of its biases, with these put into it.

The classes need nothing else of the suite: reproductions and written adapters contain their source.
"""

import inspect
import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.code import Code
from attentest.targets.adapt.parameters import FoundTable
from attentest.targets.adapt.probing import SIZES, Probe
from attentest.targets.adapt.reading import Reading
from attentest.targets.adapt.results import Returns
from attentest.targets.adapt.unspecified.parameters import without_bias
from attentest.targets.adapt.wrappers.wrapper import WIDTH, Wrapper


class Projected(nn.Module):
    """The output of `attention`, or of its part `part`, projected by a matrix of `width` rows.

    `bias` says whether the projection has one, as those of `attention` do.
    """

    def __init__(
        self, attention: nn.Module, width: int, *, bias: bool, part: int | str | None = None
    ) -> None:
        super().__init__()
        self.attention = attention
        self.output = nn.Linear(width, width, bias=bias)
        self.part = part

    def forward(self, *args: Any, **named: Any) -> Tensor:
        """Return the projected output alone."""
        found = self.attention(*args, **named)
        if isinstance(self.part, str) and not isinstance(found, dict):
            found = getattr(found, self.part)
        elif self.part is not None:
            found = found[self.part]
        return self.output(found)  # type: ignore[no-any-return]  # of torch


class WithBiases(nn.Module):
    """The module `module` whose maps at the paths `maps` have a bias too, of zeros at first.

    Numbers in the paths are written as *.
    """

    def __init__(self, module: nn.Module, width: int, *, maps: Sequence[str]) -> None:
        super().__init__()
        self.module, self.width = module, width
        for path, one in module.named_modules():
            if re.sub(r"\b\d+\b", "*", path) in maps:
                weight = one.get_parameter("weight")
                zeros = torch.zeros(len(weight), dtype=weight.dtype, device=weight.device)
                one.register_parameter("bias", nn.Parameter(zeros))

    def forward(self, *args: Any, **named: Any) -> Any:
        """Return what the module returns."""
        return self.module(*args, **named)


WITH_BIASES_SOURCE = "\n".join(
    [
        *("import re", "from collections.abc import Sequence", "from typing import Any", ""),
        *("import torch", "from torch import nn", "", "", inspect.getsource(WithBiases)),
    ]
)
PROJECTED_SOURCE = "\n".join(
    [
        "from typing import Any",
        "",
        "from torch import Tensor, nn",
        "",
        "",
        inspect.getsource(Projected),
    ]
)
"""The classes as code of their own, for a reproduction or a written adapter."""

SOME_BIASES = (
    "assumed that no bias in {} is meant, where other maps have one: this spec has the biases of a "
    "choice in all maps, and it is judged with a bias in each, of zeros at first. If one was "
    "forgotten, this is a mistake, and --strict reports it"
)

WITHOUT_OUTPUT = (
    "assumed that it has no output projection, and that what it returns are the heads side by "
    "side: it is judged with a projection behind it. If you meant one, this is a mistake, and "
    "--strict reports it"
)


def has_three_projections(module: Any) -> bool:
    """Say whether all that `module` holds are three projections of the width of a probe.

    They may be packed into one parameter, or each be one of a head.
    """
    if not isinstance(module, nn.Module):
        return False
    matrices = [one for one in module.parameters() if one.dim() > 1]
    vectors = [one for one in module.parameters() if one.dim() == 1]
    square = SIZES.d_model**2
    rest = {one.numel() % SIZES.d_model for one in vectors}
    return (
        (len(matrices) <= 3 or len(matrices) == 3 * SIZES.heads)
        and sum(one.numel() for one in matrices) == 3 * square
        and len(vectors) in (0, len(matrices))
        and rest <= {0}
    )


def has_biases(module: nn.Module) -> bool:
    """Say whether `module` holds vectors beside its matrices."""
    return any(one.dim() == 1 for one in module.parameters())


def completed(
    code: Code, probe: Probe, returns: Returns, found: FoundTable, reading: Reading
) -> Code | None:
    """Return `code` with what it lacks of its maps, None for code that lacks nothing."""
    return without_output(code, probe, returns, found, reading) or with_biases(code, found, reading)


def without_output(
    code: Code, probe: Probe, returns: Returns, found: FoundTable, reading: Reading
) -> Code | None:
    """Return attention without an output projection with one behind it, None for other code."""
    module = probe.built
    if code.component != "multi_head_attention" or code.wrapper is not None or found.table:
        return None
    if reading.strict or code.construction is None or not has_three_projections(module):
        return None
    options: dict[str, Any] = {"bias": has_biases(module)}
    options |= {} if returns.output is None else {"part": returns.output}
    return code.wrapped(Wrapper(Projected, PROJECTED_SOURCE, WIDTH, WITHOUT_OUTPUT, options))


def with_biases(code: Code, found: FoundTable, reading: Reading) -> Code | None:
    """Return code that has the bias of a choice in some maps alone with one in all, else None."""
    plain = code.wrapper is None and code.construction is not None and not reading.strict
    names = without_bias(code.component, found) if plain else []
    seen = found.observed
    if not names or seen is None or not all(one.endswith(".weight") for one in names):
        return None
    paths = [one.removesuffix(".weight") for one in names]
    modules = dict(seen.module.named_modules())
    if not all(getattr(modules.get(one), "bias", "") is None for one in paths):
        return None
    maps = list(dict.fromkeys(re.sub(r"\b\d+\b", "*", one) for one in paths))
    said = SOME_BIASES.format(" and ".join(maps))
    options: dict[str, Any] = {"maps": maps}
    return code.wrapped(Wrapper(WithBiases, WITH_BIASES_SOURCE, WIDTH, said, options))
