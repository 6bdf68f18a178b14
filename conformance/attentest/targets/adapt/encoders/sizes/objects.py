"""Objects in the place of sizes: a vocabulary, or vectors of words that another run trained."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from attentest.targets.adapt.construction import Construction
from attentest.targets.adapt.fillings import Filling
from attentest.targets.models.tables.vocabularies import Vocabulary
from attentest_spec import Sizes

_HOLDS = "assumed that {} is a vocabulary of so many tokens, in which padding is 0"
_VECTORS = "assumed that {} holds one vector for each token: it is built with random ones"


def _vocabulary(sizes: Sizes) -> Vocabulary:
    return Vocabulary(sizes.source_vocabulary, 0)


def _vectors(sizes: Sizes) -> Tensor:
    return torch.randn(sizes.source_vocabulary, sizes.d_model)


def with_vocabulary(built: Construction) -> Iterator[Construction]:
    """Yield `built` with a vocabulary in the place of each size of one."""
    size = frozenset(["source_vocabulary"])
    own = [name for name, one in built.fillings.items() if one.settles == size and one.code]
    if own:
        code = "Vocabulary(sizes.source_vocabulary, 0)"
        yield _with(built, own, Filling("vocabulary", _vocabulary, size, code), _HOLDS)
        yield with_vectors(built, own)


def with_vectors(built: Construction, own: Iterable[str]) -> Construction:
    """Return `built` with vectors of words as its arguments `own`."""
    sizes = frozenset(["source_vocabulary", "d_model"])
    code = "torch.randn(sizes.source_vocabulary, sizes.d_model)"
    return _with(built, own, Filling("vectors of words", _vectors, sizes, code), _VECTORS)


def _with(built: Construction, own: Iterable[str], filling: Filling, said: str) -> Construction:
    own = list(own)
    remark = "; ".join(filter(None, (built.remark, said.format(" and ".join(own)))))
    fillings = {**built.fillings, **dict.fromkeys(own, filling)}
    return replace(built, fillings=fillings, remark=remark)
