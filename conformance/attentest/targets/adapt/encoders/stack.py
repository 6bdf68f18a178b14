"""The layers of a class that embeds its tokens itself, called with embedded input.

The class needs nothing else of the suite: reproductions and written adapters contain its source.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

KEEP = "keep"
"""The argument of a stack that says which tokens are no padding."""


class EmbeddedStack(nn.Module):
    """The layers of `whole` and the norm after them, called with x (B, L, D) and `keep` (B, L).

    A call is a call of `whole` in which x replaces the first input of its first layer, and all
    others that are the same tensor, as in `layer(x, x, x, mask)`. `layers` and
    `norm` are paths ("" for no norm), `tokens` names the argument of the ids, `zeros` those of
    other ids, such as segments. Where `keep` is False, the id is `pad`. `sequence_first` says
    that the layers get (L, B, D). `features` is the path of the first matrix of a class that takes
    vectors in the place of ids, and `given` the shape of one sample of a class that takes others:
    an image (C, H, W), ids of one length (N,), vectors (N, 0) with 0 for their width. What `whole`
    does behind its layers may fail for other numbers of rows than its head takes. Layers that hold
    their number of `rows`, as `self.seq_len`, hold that of x during a call. Ids of one length are
    `filled` with the pad id, and x with rows of zeros. Ids that are `turned` are (L, B).
    """

    def __init__(
        self,
        whole: nn.Module,
        *,
        layers: str,
        tokens: str,
        norm: str = "",
        zeros: Sequence[str] = (),
        pad: int = 0,
        sequence_first: bool = False,
        features: str = "",
        given: Sequence[int] = (),
        rows: int = 0,
        filled: bool = False,
        turned: bool = False,
    ) -> None:
        super().__init__()
        self.around = (whole,)  # in a tuple: its embeddings are no parameters of the stack
        self.layers = whole.get_submodule(layers)
        if norm:
            self.norm = whole.get_submodule(norm)
        self.ids = (tokens, tuple(zeros), pad)
        self.sequence_first = sequence_first
        matrix = vars(whole.get_submodule(features)) if features else {}
        self.given = tuple(given)
        self.filled = filled
        self.turned = turned
        self.rows = [
            (held, own)
            for held in (vars(one) for one in self.layers.modules() if rows)
            for own, value in held.items()
            if type(value) is int and value == rows and re.search("seq|len|pat|tok|ctx|block", own)
        ]
        self.features: int = matrix.get("in_features", matrix.get("in_channels", 0))

    def forward(self, x: Tensor, keep: Tensor | None = None, **rest: Any) -> Tensor:
        """Return what the norm, or else the last layer, returns inside of `whole`."""
        tokens, zeros, pad = self.ids
        length = self.given[0] if len(self.given) == 1 else x.shape[1]
        ids = torch.full((len(x), length), int(pad == 0), device=x.device)
        if self.filled:
            if (missing := length - x.shape[1]) < 0:
                raise ValueError(f"sequences of {x.shape[1]} are longer than {length}")
            kept = x.new_ones(x.shape[:2], dtype=torch.bool) if keep is None else keep
            keep = nn.functional.pad(kept, (0, missing))
            x = nn.functional.pad(x, (0, 0, 0, missing))
        given = {tokens: ids if keep is None else ids.where(keep, pad), **rest}
        given |= {own: torch.zeros_like(ids) for own in zeros}
        given |= {own: given[own].t() for own in (tokens, *zeros) if self.turned}
        if len(self.given) > 1:
            width = self.features or x.shape[-1]
            given[tokens] = x.new_ones(len(x), *(one or width for one in self.given))
        elif self.features:
            given[tokens] = x.new_ones(*x.shape[:2], self.features)
        entering = x.transpose(0, 1) if self.sequence_first else x
        layers = list(self.layers.children())
        outputs: list[Tensor] = []

        def enter(call: Callable[..., Any], *args: Any, **named: Any) -> Any:
            given = [*args, *named.values()]
            first = next(one for one in given if isinstance(one, Tensor))
            given = [entering if is_same(one, first) else one for one in given]
            return call(*given[: len(args)], **dict(zip(named, given[len(args) :], strict=True)))

        def leave(call: Callable[..., Any], *args: Any, **named: Any) -> Any:
            output = call(*args, **named)
            outputs.append(output[0] if isinstance(output, tuple) else output)
            return output

        last = getattr(self, "norm", layers[-1])
        before = [held[own] for held, own in self.rows]
        with replaced(layers[0], enter), replaced(last, leave), rectangular():
            try:
                for held, own in self.rows:
                    held[own] = x.shape[1]
                self.around[0](**given)
            except Exception:
                if not outputs:
                    raise
            finally:
                for (held, own), value in zip(self.rows, before, strict=True):
                    held[own] = value
        found = outputs[-1].transpose(0, 1) if self.sequence_first else outputs[-1]
        return found[:, : length - missing] if self.filled else found

    def train(self, mode: bool = True) -> "EmbeddedStack":
        """Set the mode of all of `whole`."""
        self.around[0].train(mode)
        return super().train(mode)

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> "EmbeddedStack":
        """Move all of `whole`: masks are often made in the precision of its embeddings."""
        self.around[0]._apply(fn, recurse)  # type: ignore[no-untyped-call]  # of torch
        return self


def stack_in(outer: nn.Module, whole: nn.Module, options: Mapping[str, Any]) -> EmbeddedStack:
    """Return the stack of `whole`, a module in `outer`, which is kept in an attribute."""
    stack = EmbeddedStack(whole, **options)
    vars(stack)["outer"] = (outer,)  # in a tuple: it is no part of the stack
    return stack


def is_same(one: Any, other: Tensor) -> bool:
    """Say whether `one` is the tensor `other`, or a view of all of it as it is."""
    if one is other or not isinstance(one, Tensor):
        return one is other
    alike = one.shape == other.shape and one.stride() == other.stride()
    return alike and one.data_ptr() == other.data_ptr()


@contextmanager
def replaced(module: nn.Module, function: Callable[..., Any]) -> Iterator[None]:
    """Call `function` with the forward of `module` in its place: hooks miss `module.forward(x)`."""
    before = vars(module).get("forward")
    call = module.forward
    vars(module)["forward"] = partial(function, call)
    try:
        yield
    finally:
        del vars(module)["forward"]
        if before is not None:
            vars(module)["forward"] = before


@contextmanager
def rectangular() -> Iterator[None]:
    """Compute with layers of torch as in training: its fast path cuts off padding, and its mask.

    The input that is replaced has all of its rows, and needs the mask.
    """
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


STACK_SOURCE = "\n".join(
    [
        "import re",
        "from collections.abc import Callable, Iterator, Sequence",
        "from contextlib import contextmanager",
        "from functools import partial",
        "from typing import Any",
        "",
        "from torch import Tensor, nn",
        "",
        "",
        inspect.getsource(EmbeddedStack),
        "",
        inspect.getsource(is_same),
        "",
        inspect.getsource(replaced),
        "",
        inspect.getsource(rectangular),
    ]
)
"""The class as code of its own, for a reproduction or a written adapter."""
