"""Embeddings that add rows of other tables to those of the tokens, and norm the sum.

The tables of positions and of segments are taken off, and so is the norm, where a watched call
shows that the result is the norm of the sum of all rows, or the sum. The classes need nothing else
of the suite: reproductions and written adapters contain their source.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.code import Code
from attentest.targets.adapt.computed_values import values_computed
from attentest.targets.adapt.encoders.stack import replaced
from attentest.targets.adapt.objects.layer_numbers import with_more
from attentest.targets.adapt.probing import SIZES, Probe, undisturbed
from attentest.targets.adapt.reading import Reading
from attentest.targets.adapt.wrappers.core import norms_of
from attentest.targets.adapt.wrappers.placed import has_positions
from attentest.targets.adapt.wrappers.wrapper import WIDTH, Wrapper
from attentest_spec import Sizes


class NoRows(nn.Module):
    """Replaces a table: rows of zeros of the size `width` for ids of any shape."""

    def __init__(self, like: nn.Module, width: int) -> None:
        super().__init__()
        self.like, self.width = (like,), width  # in a tuple: it is no part of this one

    def forward(self, ids: Any) -> Any:
        """Return the rows of zeros."""
        return next(self.like[0].parameters()).new_zeros((*ids.shape, self.width))


class TokensAlone(nn.Module):
    """The result of `embedding` without the rows of its tables `added` and without its `norm`.

    Both are paths; `norm` is "" for none.
    """

    def __init__(
        self, embedding: nn.Module, width: int, *, added: tuple[str, ...], norm: str = ""
    ) -> None:
        super().__init__()
        for path in (*added, norm):
            place, _, own = path.rpartition(".")
            if path:
                other = nn.Identity() if path == norm else NoRows(embedding, width)
                setattr(embedding.get_submodule(place), own, other)
        self.embedding = embedding

    def forward(self, *args: Any, **named: Any) -> Any:
        """Return what the embedding returns."""
        return self.embedding(*args, **named)


SUMMED_SOURCE = "\n".join(
    [
        "from typing import Any",
        "",
        "from torch import nn",
        "",
        "",
        inspect.getsource(NoRows),
        "",
        inspect.getsource(TokensAlone),
    ]
)
"""The classes as code of their own, for a reproduction or a written adapter."""

_WITHOUT = (
    "assumed that what is added to the rows of tokens is no part of the embedding, which is judged "
    "without it: {}. If you meant the component alone, this is a mistake, and --strict reports it"
)
_TOKENS = torch.tensor([[9, 10, 9, 11, 10], [12, 9, 11, 10, 9]])
_SERVED = (SIZES, SIZES.but(max_length=4), SIZES.but(max_length=4, source_pad=3))
"""The sizes of texts of the greatest length that an embedding has to serve."""
_LONGER = "; it is built for more positions than its texts have: {}"
_EPSILONS = (0.0, 1e-12, 1e-8, 1e-7, 1e-6, 1e-5, 1e-3)
_CLOSE = 1e-5


@dataclass(frozen=True)
class _Seen:
    """A watched call: what each part was given and returned, and the result of the whole."""

    calls: list[tuple[str, Any, Tensor]]
    result: Tensor

    def of(self, path: str) -> tuple[Any, Tensor] | None:
        """Return what the part at `path` was given and returned, None unless it ran once."""
        found = [(given, made) for own, given, made in self.calls if own == path]
        return found[0] if len(found) == 1 else None


def without_sums(code: Code, probe: Probe, reading: Reading) -> Iterator[Code]:
    """Yield an embedding without the rows of other tables that it adds and without its norm."""
    module = probe.built
    if code.component != "embedding" or code.wrapper is not None or reading.strict:
        return
    if code.construction is None or not isinstance(module, nn.Module):
        return
    tables = [path for path, one in module.named_modules() if path and _gives_rows(path, one)]
    if len(tables) < 2:
        return
    norms = norms_of(module, probe.dtype)
    try:
        with undisturbed():
            found = _alone(code, probe, tables, norms)
    except Exception:  # code that a user wrote may raise anything
        return
    if found is not None:
        yield found


def _gives_rows(path: str, part: nn.Module) -> bool:
    """Say whether a part is a table, also of a class with a name of its own, or of positions."""
    if isinstance(part, nn.Embedding):
        return type(part).forward is nn.Embedding.forward
    return has_positions(path, part) and not any(True for _ in part.parameters())


def _alone(code: Code, probe: Probe, tables: Sequence[str], norms: Sequence[str]) -> Code | None:
    """Return the rows of tokens alone, None where they are not seen or not for every length."""
    wrapper, first = _wrapper(code, probe, tables, norms) or (None, 0)
    if wrapper is None:
        return None
    pads = "source_pad" in code.known and first == SIZES.source_pad + 1
    for more, also in ((0, ""), (first, ""), *[(1, "source_pad")] * pads):
        longer = _longer(code, more, also)
        if all(_serves(longer, wrapper, sizes) for sizes in _SERVED):
            words = f"{more} and the pad id" if also else f"{more}"
            said = wrapper.sentence + _LONGER.format(words) * bool(more)
            return longer.wrapped(replace(wrapper, sentence=said))
    return None


def _longer(code: Code, more: int, also: str) -> Code:
    """Return `code` built for `more` positions, and the size `also`, than those of its texts."""
    made = code.construction
    if not more or made is None:
        return code
    made = replace(made, fillings=with_more(made.fillings, "max_length", more, also))
    return replace(code, construction=made, build=made)


def _serves(code: Code, wrapper: Wrapper, sizes: Sizes) -> bool:
    """Say whether an embedding without its other rows takes texts of the greatest length."""
    tokens = torch.full((1, sizes.max_length), 9)
    try:
        made = wrapper(code.build(sizes), sizes).eval()
        return isinstance(_called(made, code, tokens), Tensor)
    except (IndexError, RuntimeError):
        return False


def _wrapper(
    code: Code, probe: Probe, tables: Sequence[str], norms: Sequence[str]
) -> tuple[Wrapper, int] | None:
    """Return the wrapper and the first row of positions.

    None where the watched call is not the norm of the sum of all rows.
    """
    whole = code.build(SIZES).to(probe.dtype).eval()
    with torch.no_grad():
        for one in whole.parameters():
            one.add_(torch.randn(one.shape, dtype=one.dtype) / 2)
    seen = _watched(whole, code, [*tables, *norms])
    used = [path for path in (*tables, *norms) if path in {own for own, _, _ in seen.calls}]
    parts = {path: whole.get_submodule(path) for path in tables}
    rows_of_ids = [path for path in tables if isinstance(parts[path], nn.Embedding)]
    own = [path for path in rows_of_ids if _is_of_tokens(seen, path)]
    added = tuple(path for path in tables if path in used and path not in own)
    norm = [path for path in norms if path in used]
    if len(own) != 1 or not added or len(norm) > 1 or not set(tables) <= set(used):
        return None  # a table that the call does not use may be a mistake
    said = [_said(path, parts[path], seen) for path in added]
    if not all(said) or sum("position" in one for one in said) > 1:
        return None
    if norm and not _ends_in(seen, norm[0], whole.get_submodule(norm[0])):
        return None
    said += [f"the norm {one} of the sum" for one in norm]
    total = seen.of(norm[0]) if norm else None
    total_rows = total[0] if total else seen.result
    options: dict[str, Any] = {"added": added} | ({"norm": norm[0]} if norm else {})
    wrapper = Wrapper(TokensAlone, SUMMED_SOURCE, WIDTH, _WITHOUT.format(", ".join(said)), options)
    rows = _called(wrapper(whole, SIZES), code, _TOKENS)
    others = [made for path in added for _, made in [seen.of(path) or (None, rows)]]
    if not torch.allclose(sum(others, rows), total_rows, rtol=_CLOSE, atol=_CLOSE):
        return None
    firsts = [int(one.rpartition(" ")[2]) for one in said if "position from" in one]
    return wrapper, next(iter(firsts), 0)


def _called(made: Callable[..., Any], code: Code, tokens: Tensor) -> Any:
    """Return what `made` returns for token ids (B, L); segments that must be given are zeros."""
    called = code.signature.parameters.values()
    needed = [one.name for one in called if one.default is inspect.Parameter.empty]
    return made(tokens, **dict.fromkeys(values_computed("embedding", needed), tokens * 0))


def _watched(whole: nn.Module, code: Code, paths: Sequence[str]) -> _Seen:
    calls: list[tuple[str, Any, Tensor]] = []

    def watch(path: str, call: Any, *args: Any, **named: Any) -> Any:
        made = call(*args, **named)
        entered = next(iter([*args, *named.values()]))
        calls.append((path, entered.clone(), made.clone()))
        return made

    with ExitStack() as stack, torch.no_grad():
        for path in paths:
            stack.enter_context(replaced(whole.get_submodule(path), partial(watch, path)))
        return _Seen(calls, _called(whole, code, _TOKENS))


def _is_of_tokens(seen: _Seen, path: str) -> bool:
    found = seen.of(path)
    return found is not None and torch.equal(found[0], _TOKENS)


def _said(path: str, table: nn.Module, seen: _Seen) -> str:
    """Return which rows a table adds: those of consecutive positions, or one row; "" for others."""
    found = seen.of(path)
    if found is None or not isinstance(found[0], Tensor) or found[0].is_floating_point():
        return ""
    if not isinstance(table, nn.Embedding):
        return f"{path}, which gives positions" if _ignores_tokens(table, *found) else ""
    ids = found[0].broadcast_to(_TOKENS.shape)
    first = int(ids.flatten()[0])
    if torch.equal(ids, torch.arange(first, first + ids.shape[1]).expand_as(ids)):
        return f"{path}, one row for each position from {first}"
    is_one = bool((ids == first).all())
    of_positions = len(next(table.parameters())) >= SIZES.max_length
    return f"{path}, its row {first}" if is_one and not of_positions else ""


def _ignores_tokens(positions: nn.Module, given: Tensor, made: Tensor) -> bool:
    """Say whether a part without parameters gives rows (B, L, D) that no token id changes."""
    rows = made.broadcast_to((*given.shape, made.shape[-1]))
    with torch.no_grad():
        return torch.equal(rows, rows[:1].expand_as(rows)) and torch.equal(
            positions(given.flip(-1)), made
        )


def _ends_in(seen: _Seen, path: str, norm: nn.Module) -> bool:
    """Say whether the result is that of `norm`, a layer norm or an RMS norm of its input."""
    found = seen.of(path)
    if found is None or not torch.equal(found[1], seen.result):
        return False
    x, made = found
    with torch.no_grad():
        shift = norm(torch.zeros_like(x))  # the bias, where there is one
    centred = x - x.mean(-1, keepdim=True)
    for rows in (centred, x):
        for epsilon in _EPSILONS:
            plain = rows * (rows.square().mean(-1, keepdim=True) + epsilon).rsqrt()
            gain = (made - shift) / plain
            if torch.allclose(gain, gain[:1, :1].expand_as(gain), rtol=1e-4, atol=1e-6):
                return True
    return False
