"""Vocabularies as objects: what a constructor asks for its size and the id of padding.

The class needs nothing else of the suite: reproductions and written adapters contain its source.
"""

import inspect
import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any


class Vocabulary:
    """A vocabulary of `size` tokens, by any of its usual names; every token for padding is `pad`.

    All other tokens that are looked up have the id 1.
    """

    def __init__(self, size: int, pad: int) -> None:
        self.size = self.vocab_size = self.n_words = self.num_tokens = size
        self.pad = self.pad_id = self.pad_idx = self.pad_index = self.pad_token_id = pad
        self.stoi = self.word2idx = self.word2index = self.token2idx = self.token_to_id = self

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Any:  # by the method below, it would never end
        return iter(range(self.size))

    def __getitem__(self, token: Any) -> int:
        return self.pad if "pad" in str(token).lower() else 1

    def __call__(self, token: Any) -> int:
        """Return the id of `token`."""
        return self[token]

    def get(self, token: Any, _default: Any = None) -> int:
        """Return the id of `token`."""
        return self[token]


VOCABULARY_SOURCE = "\n".join(["from typing import Any", "", "", ""]) + inspect.getsource(
    Vocabulary
)
"""The class as code of its own."""

_IS_NO_NUMBER = (
    "has no len()",
    "'int' object is not subscriptable",
    "'int' object has no attribute",
)


def with_vocabularies(expression: str, failure: str) -> Iterator[str]:
    """Yield the expression with vocabularies in the place of their sizes, where those failed.

    Where no argument is one by its name, the arguments that were taken for widths may be.
    """
    if _NO_TABLE in failure and "_vocabulary" not in expression:
        yield from _with_rows(expression)
    if not any(one in failure for one in _IS_NO_NUMBER):
        return
    changed = expression
    for side in ("source", "target"):
        held = f"Vocabulary(sizes.{side}_vocabulary, sizes.{side}_pad)"
        changed = changed.replace(f"=sizes.{side}_vocabulary", f"={held}")
    if changed != expression:
        yield changed


_NO_TABLE = "it holds no table of"
_OF_SOURCE = re.compile(r"_?(in|inp|input|src|source|enc|encoder)(_|$)")
_OF_TARGET = re.compile(r"_?(out|outp|output|tgt|trg|target|dec|decoder)(_|$)")


def _with_rows(expression: str) -> Iterator[str]:
    """Yield the expression with vocabularies in the place of two of its widths, or of one of them.

    The tables of what is built show which are right. Names of sides come first.
    """
    widths = [one[1] for one in re.finditer(r"(\w+)=sizes\.d_model(?=[,)])", expression)]
    if len(widths) != len(set(widths)) or not 2 <= len(widths) <= _MOST_WIDTHS:
        return
    turned = [pair[::-1] for pair in combinations(widths, 2)]
    pairs = sorted([*combinations(widths, 2), *turned], key=lambda pair: -_of_sides(*pair))
    for source, target in pairs if len(widths) > 2 else ():
        yield _with(_with(expression, source, "source_vocabulary"), target, "target_vocabulary")
    for own in widths:
        yield _with(expression, own, "source_vocabulary")


_MOST_WIDTHS = 5


def _with(expression: str, own: str, size: str) -> str:
    return re.sub(rf"\b{own}=sizes\.d_model\b", f"{own}=sizes.{size}", expression)


def _of_sides(source: str, target: str) -> int:
    return bool(_OF_SOURCE.search(source)) + bool(_OF_TARGET.search(target))
