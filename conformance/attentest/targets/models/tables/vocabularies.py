"""Vocabularies as objects: what a constructor asks for its size and the id of padding.

The class needs nothing else of the suite: reproductions and written adapters contain its source.
"""

import inspect
import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any


class Id(int):
    """A number that may be called, as a method that returns it."""

    def __call__(self, **_: Any) -> int:
        """Return the number."""
        return int(self)


class Vocabulary:
    """A vocabulary of `size` tokens, by any of its usual names; every token for padding is `pad`.

    All other tokens that are looked up have the id 1. A number may be read or asked for, as in
    `pad_id` and `pad_id()`, and so may the words, as in `stoi`, `vocab` and `get_vocab()`.
    """

    def __init__(self, size: int, pad: int) -> None:
        self.size = self.vocab_size = self.n_words = self.num_tokens = self.n_vocab = Id(size)
        self.get_vocab_size = self.get_piece_size = self.piece_size = self.GetPieceSize = self.size
        self.pad = self.pad_id = self.pad_idx = self.pad_index = self.pad_token_id = Id(pad)
        self.get_stoi = self.get_itos = self.get_vocab = self
        self.stoi = self.word2idx = self.word2index = self.token2idx = self.token_to_id = self
        self.itos = self.idx2word = self.index2word = self.id2token = self.vocab = self
        self.convert_tokens_to_ids = self.piece_to_id = self.lookup_token = self.index = self
        self.pad_token, self.unk_token = "<pad>", "<unk>"
        self.bos_token = self.sos_token = self.eos_token = self.init_token = "<s>"
        self.bos_id = self.sos_id = self.eos_id = self.unk_id = self.bos_idx = self.sos_idx = Id(1)
        self.eos_idx = self.unk_idx = self.bos_token_id = self.eos_token_id = Id(1)

    def __getattr__(self, name: str) -> Any:
        """Return what another spelling of a usual name asks for, as `PAD_ID` or `src_pad_idx`."""
        words = name.lower().replace("_", "")
        if name.startswith("__") or "pad" not in vars(self):
            raise AttributeError(name)
        if "pad" in words and "mask" not in words:
            return "<pad>" if words.endswith(("token", "word", "symbol")) else self.pad
        if words.endswith(("size", "len", "length", "count")) or words.startswith(("num", "nvoc")):
            return self.size
        if re.match(r"(bos|sos|eos|unk|start|end|begin|cls|sep)(token)?(id|idx|index)?$", words):
            return "<s>" if words.endswith("token") else Id(1)
        raise AttributeError(name)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Any:  # by the method below, it would never end
        return iter(range(self.size))

    def __getitem__(self, token: Any) -> int:
        return self.pad if "pad" in str(token).lower() else 1

    def __contains__(self, token: Any) -> bool:
        return True

    def __call__(self, token: Any = None, **_: Any) -> Any:
        """Return the id of `token`; without one, what is asked for: the words themselves."""
        return self if token is None else self[token]

    def get(self, token: Any, _default: Any = None) -> int:
        """Return the id of `token`."""
        return self[token]


VOCABULARY_SOURCE = "\n".join(["import re", "from typing import Any", "", "", ""]) + "\n\n".join(
    inspect.getsource(one) for one in (Id, Vocabulary)
)
"""The class as code of its own."""

_IS_NO_NUMBER = (
    "has no len()",
    "'int' object is not subscriptable",
    "'int' object has no attribute",
    "argument of type 'int' is not iterable",
    "'int' object is not iterable",
)


def with_vocabularies(expression: str, failure: str) -> Iterator[str]:
    """Yield the expression with vocabularies in the place of their sizes, where those failed.

    Where no argument is one by its name, the arguments that were taken for widths may be.
    """
    if _NO_TABLE in failure and "_vocabulary" not in expression:
        yield from _with_rows(expression)
    if not any(one in failure for one in _IS_NO_NUMBER):
        return
    objects = [_held(expression, own) for own in (r"\w+", _OF_OBJECTS)]
    yield from dict.fromkeys(one for one in objects if one != expression)


_OF_OBJECTS = r"(?!n_|num_)(?!\w*(?:size|len|length|count|num))\w+"
"""The names of arguments that may be vocabularies, where others are the sizes of these."""


def _held(expression: str, own: str) -> str:
    """Return `expression` with vocabularies for the arguments with a name like `own`."""
    held = r"\1=Vocabulary(sizes.\2_vocabulary, sizes.\2_pad)"
    return re.sub(rf"\b({own})=sizes\.(source|target)_vocabulary\b", held, expression)


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
