"""The meaning of a mask argument, in code with its own convention.

A mask that is applied against its own name or documentation is a mistake to be found and no
convention: words decide first, and a probing call only where they say nothing.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.layouts import Layout, split
from attentest_spec import Unsupported

SHAPES = ("broadcast", "full", "per sample", "per key", "per pair", "samples last")
"""The shapes of a mask that code may take, from the most to the least that one can say."""

LENGTHS = ("lengths per query", "lengths")
"""The shapes of a number of keys in the place of a mask: the keys after so many are hidden."""

COLUMN = "column"
"""The shape (B, K, 1) of a mask, which is tried for an effect alone."""

MEANINGS = ("keep", "blocks", "additive", "lengths")
"""The meanings of an entry of a mask."""

_SHOWN = {
    "broadcast": "any shape that broadcasts to (B, H, Q, K)",
    "full": "written out for every query and key",
    "per sample": "shaped (B, Q, K), one for all heads",
    "per key": "shaped (B, K), one for all queries",
    "per pair": "shaped (Q, K), one for all samples",
    "samples last": "shaped (Q, K, B), one for all heads",
    "lengths": "shaped (B,)",
    "lengths per query": "shaped (B, Q)",
}
_KINDS = {
    "broadcast": ("none", "padding", "causal", "per-sample", "per-head"),
    "full": ("none", "padding", "causal", "per-sample", "per-head"),
    "per sample": ("none", "padding", "causal", "per-sample"),
    "per key": ("none", "padding"),
    "per pair": ("none", "causal"),
    "samples last": ("none", "padding", "causal", "per-sample"),
    "lengths": ("none", "padding"),
    "lengths per query": ("none", "padding", "causal", "per-sample"),
}
_MEANS = {
    ("bool", "keep"): "True may be attended",
    ("bool", "blocks"): "True blocks",
    ("float", "keep"): "the float 1.0 may be attended",
    ("float", "blocks"): "the float 1.0 blocks",
    ("int", "keep"): "the integer 1 may be attended",
    ("int", "blocks"): "the integer 1 blocks",
    ("float", "additive"): "added to the scores, 0 or minus infinity",
    ("int", "lengths"): "the number of keys that may be attended, the first ones",
}


@dataclass(frozen=True)
class Style:
    """One way to write a mask: its shape, the type of its entries and what they mean.

    `fill` is what an additive mask adds where a key is hidden.
    """

    shape: str = "broadcast"
    entries: str = "bool"
    meaning: str = "keep"
    fill: float = -torch.inf

    @property
    def words(self) -> str:
        """The meaning of the mask, in one phrase."""
        return f"{_MEANS[self.entries, self.meaning]}; {_SHOWN[self.shape]}"

    @property
    def kinds(self) -> Collection[str]:
        """The kinds of mask that can be written so."""
        return _KINDS[self.shape]

    def write(self, keep: Tensor, like: Tensor, layout: Layout) -> Sequence[Tensor]:
        """Return the contract's mask `keep` as each call of `layout` gets it.

        `like` is the tensor of the queries. Raises Unsupported for a mask that has no such shape.
        """
        if self.meaning == "lengths":
            return lengths_of(keep, like, self.shape, layout.fold)
        shaped = shaped_mask(keep, like, self.shape, layout.fold)
        return [self._entries(one, like.dtype) for one in shaped]

    def code(self, keep: str, like: str) -> str:
        """Return an expression for the entries of a mask in the shape of this style."""
        if self.meaning == "additive":
            return f"additive({keep}, {like}.dtype)"
        entries = keep if self.meaning == "keep" else f"~{keep}"
        if self.entries == "bool":
            return entries
        kind = f"to({like}.dtype)" if self.entries == "float" else "long()"
        return f"({entries}).{kind}" if entries != keep else f"{keep}.{kind}"

    def _entries(self, keep: Tensor, dtype: torch.dtype) -> Tensor:
        if self.meaning == "additive":
            return torch.zeros(keep.shape, dtype=dtype, device=keep.device).masked_fill(
                ~keep, self.fill
            )
        entries = keep if self.meaning == "keep" else ~keep
        return entries.to({"bool": torch.bool, "float": dtype, "int": torch.int64}[self.entries])


def shaped_mask(keep: Tensor, like: Tensor, shape: str, fold: str) -> Sequence[Tensor]:
    """Return the mask `keep` (B, H, Q, K) in a shape that code takes, for each of its calls.

    `like` is the tensor of the queries, `fold` says what one call gets of it.
    """
    samples, heads, queries, _ = keep.shape
    if shape == "broadcast" and fold == "whole":
        return [keep]
    if shape in ("per key", "column"):
        if heads != 1 or queries != 1:
            raise Unsupported("its mask cannot differ between queries or heads")
        row = keep[:, 0, 0].expand(len(like), -1)
        return [row if shape == "per key" else row[..., None]]
    if shape == "per pair" and fold != "alone":
        if heads != 1 or samples != 1:
            raise Unsupported("its mask cannot differ between samples or heads")
        return [keep[0, 0].expand(like.shape[-2], -1)]
    every = like.shape[1] if like.ndim == 4 else heads
    whole = keep.expand(len(like), every, like.shape[-2], -1)
    if shape in ("per sample", "samples last") or (fold == "alone" and like.ndim == 3):
        if heads != 1:
            raise Unsupported("its mask cannot differ between heads")
        whole = whole[:, 0]
    return split(whole.permute(1, 2, 0) if shape == "samples last" else whole, fold)


def lengths_of(keep: Tensor, like: Tensor, shape: str, fold: str) -> Sequence[Tensor]:
    """Return how many keys the mask `keep` (B, H, Q, K) keeps: (B,), or "lengths per query" (B, Q).

    `like` is the tensor of the queries, `fold` says whether the heads are in the batch. Raises
    Unsupported where a hidden key is before one that is kept.
    """
    count = keep.sum(-1)
    if not torch.equal(keep, torch.arange(keep.shape[-1], device=keep.device) < count[..., None]):
        raise Unsupported("its mask is a number of keys")
    if keep.shape[1] != 1 or (shape == "lengths" and keep.shape[2] != 1):
        raise Unsupported("its lengths are those of samples")
    heads = like.shape[1] if fold == "heads" and like.ndim == 4 else 1
    each = count.expand(len(like), heads, like.shape[-2]).flatten(0, 1)
    return [each if shape == "lengths per query" else each[:, 0]]


def masks_of_lengths(samples: int, keys: int, queries: int) -> Tensor:
    """Return a mask (B, 1, Q, K) that hides the last keys, of every row others where it can."""
    rows = torch.arange(samples)[:, None, None, None]
    if queries > 1:
        count = 2 + (rows + torch.arange(queries)[:, None]) % (keys - 2)
    else:
        count = keys - 1 - rows % (keys - 2)
    return torch.arange(keys) < count


STYLES = tuple(
    Style(shape, entries, meaning)
    for entries, meanings in (
        ("bool", ("keep", "blocks")),
        ("float", ("keep", "blocks")),
        ("int", ("keep", "blocks")),
        # Last: (1 - mask) * -10000 takes a mask of 0 and minus infinity too, and means 1 and 0.
        ("float", ("additive",)),
    )
    for shape in SHAPES
    for meaning in meanings
) + tuple(Style(shape, "int", "lengths") for shape in LENGTHS)
"""All styles, in the order in which they are tried: the contract's own first."""


def plain_style(meanings: Collection[str]) -> Style:
    """Return the first style of the first meaning that words allow, the contract's own for none."""
    wanted = next(iter(meanings), "keep")
    return next(style for style in STYLES if style.meaning == wanted)


_LENGTHS = re.compile(
    r"(key|k|kv|keyvalue|valid|src|source|memory|mem|enc|encoder|context|seq|sequence|input|in|x|h|i"
    r"|token|actual|real|batch|text|texts|word|words|sent|sentence|doc)?(lens|lengths)"
    r"|valid(len|length)"
)


def is_length(argument: str) -> bool:
    """Say whether an argument says by its name how many positions are no padding."""
    return _LENGTHS.fullmatch(squashed(argument)) is not None


_BY_NAME = (
    # torch.nn.MultiheadAttention and all that follow it: True marks a pad, which is ignored.
    (r"keypaddingmask", "blocks"),
    # The tokenizers' `attention_mask`: 1 for a real token.
    (r"attentionmask", "keep"),
    # Names that say what an entry marks; "invalid" holds the word for the contrary.
    (r"block|ignore|hide|hidden|forbid|invalid|exclude", "blocks"),
    (r"keep|valid|allow|visible|attendable|permitted|^ok$", "keep"),
    (r"bias|additive|penalty", "additive"),
)

_TRUE = r"(?<!-)\b(true|1|1\.0|ones?|non-?zero)\b"
_FALSE = r"\b(false|0|0\.0|zeros?)\b"
_SEEN = (
    r"(keep|kept|attend|allow|valid|visible|real|take part|participat|(?<!un)seen"
    r"|(may|can) (look|see)\b)"
)
_HIDDEN = (
    r"(not (be )?(attend|allow|visible|valid|(seen|look|see)\b)|cannot (attend|(look|see)\b)"
    r"|unseen|(nobody|nothing|none|no \w+) (may|can) (attend|look|see)\b"
    r"|mask(ed|s)?(?! (will|may|can) be broadcast) (out|position|key|token)?|block|ignor"
    r"|masked\b|masking\b(?! \w)|hidden|hide|pad|prevent|forbid|exclude"
    r"|(filled|replaced|set) (with|to|by) (a )?(-\s*(inf|1e)|(large|very) negative|minus inf))"
)
_UNHIDDEN = r"\b(not|non|un)[- ]?(be )?(mask|pad|block|ignor|hidden|exclud)\w*"
_ADDITIVE = r"\badditive\b|added to (the )?(attention )?(scores|logits)|-\s*inf"
# What is said of one value ends where another value is named.
_LINK = rf"(?:(?!{_TRUE}|{_FALSE})[^.;,\n]){{0,45}}?"
_NAMED = r"\w*( (position|token|element|entr|key|value|place|word|step|frame|one)\w*)?"
_SET = r" (is|are|be|get|has|have|=) ((the )?value |set to |marked (as |with |by )?)?"
_PADDED_ARE = r"\b(pad|masked|hidden|ignored|blocked|excluded|invalid)" + _NAMED + _SET
_REAL_ARE = r"\b(valid|real|visible|actual|kept)" + _NAMED + _SET
_FILL = re.compile(r"\w*(masked_)?fill_?\([^)]*\)?")
"""Code that fills: its numbers are not those of the mask."""

_BY_WORDS = (
    # "padded elements are True"; of "real tokens are 1 and pads are 0" the middle says nothing.
    (_PADDED_ARE + _TRUE, "blocks"),
    (_PADDED_ARE + _FALSE, "keep"),
    (_REAL_ARE + _TRUE, "keep"),
    (_REAL_ARE + _FALSE, "blocks"),
    # What is hidden comes first: "may not be attended" holds the word for the contrary.
    (_TRUE + _LINK + _HIDDEN, "blocks"),
    (_FALSE + _LINK + _HIDDEN, "keep"),
    (_TRUE + _LINK + _SEEN, "keep"),
    (_FALSE + _LINK + _SEEN, "blocks"),
    (_ADDITIVE, "additive"),
)


def meanings_by_words(
    argument: str, words: str, about: str = r"mask", others: Iterable[str] = ()
) -> tuple[tuple[str, ...], str]:
    """Return what the mask `argument` can mean by its documentation or name, and which of them.

    Empty where neither says it. A name decides between keeping and hiding alone: what is added to
    the scores goes by the same names. `about` is the pattern of the sentences that count; those
    that name the argument come first, and those that name one of the `others`, or a mask of order
    that code makes, are about that.
    """
    if is_length(argument):
        return ("lengths",), "name"
    plain = _FILL.sub("", _OTHER_SCRIPT.sub(", ", words.lower()))
    plain = re.sub(_UNHIDDEN, "visible", plain)
    lines = [line for line in re.split(r"[\n;.]\s", plain) if re.search(about, line)]
    own = [line for line in lines if _names(argument, line)]
    lines = [
        line
        for line in lines
        if line in own or not (_ORDER.search(line) or any(_names(o, line) for o in others))
    ]
    for held, (pattern, meaning) in product((own, lines), _BY_WORDS):
        said = next((line for line in held if re.search(pattern, line)), None)
        if said is not None:
            # "additive, 0 keeps": the sentence gives the numbers of a mask that is added.
            either = meaning != "additive" and re.search(_ADDITIVE, said)
            source = "caller" if OF_CALLER in said else "documentation"
            return (meaning, "additive") if either else (meaning,), source
    for pattern, meaning in _BY_NAME:
        if re.search(pattern, squashed(argument)):
            return (meaning, "additive"), "name"
    return (), ""


OF_CALLER = "of its caller"
"""Words of what a mask is by the name that its caller has for it."""

_OTHER_SCRIPT = re.compile("[\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef]+")
"""Words of Chinese, Japanese and Korean, which say what is not read: they end a phrase."""

_ORDER = re.compile(r"\b(causal|look_?ahead|subsequent|future|no_?peak|triu|tril)\w*_mask")
"""The name of a mask of order, which code makes by itself where no argument has it."""


def _names(argument: str, line: str) -> bool:
    return re.search(rf"\b{re.escape(argument.lower())}\b", line) is not None


_BETWEEN = (
    r"(?:[\s:=,-]|\b(?:is|a|an|the|of|with|bool|boolean|float|binary|additive|optional|torch|tensor"
    r"|mask|shape|shaped|size|attention|padding)\b|\.)*"
)
"""The words that may separate the name of an argument from its shape."""
_SHAPE = r"[(\[]\s*([a-z_0-9* ]+(?:,\s*[a-z_0-9* ]+)+)\s*[)\]]"
_SAMPLES = re.compile(r"(b|n|bs|bsz|batch\w*)( size)?")


def shapes_by_words(argument: str, words: str) -> tuple[str, ...]:
    """Return the shapes that the documentation gives the mask `argument`, () for none.

    A shape follows the argument in brackets: "mask (B, Q, K)", "mask: bool of shape [b, l]".
    """
    pattern = rf"\b{re.escape(argument.lower())}\b{_BETWEEN}{_SHAPE}"
    stated = {match[1] for match in re.finditer(pattern, words.lower())}
    if len(stated) != 1:
        return ()
    axes = [axis.strip() for axis in stated.pop().split(",")]
    sample = bool(_SAMPLES.fullmatch(axes[0]))
    match len(axes), sample:
        case 4, _:
            return ("broadcast", "full")
        case 3, False if _SAMPLES.fullmatch(axes[2]):
            return ("samples last",)
        case 3, True:
            return () if axes[1] == "1" else ("per sample",)
        case 2, True:
            return ("per key",)
        case 2, False:
            return ("per pair",)
        case _:
            return ()


NO_CONVENTION = "a probing call shows no convention"

_NOT_DOCUMENTED = "; assumed as nothing says it, and a mistake if it is meant to allow"

SAID = {
    "lengths": "says how many keys may be attended",
    "keep": "says what may be attended",
    "blocks": "says what is hidden",
    "additive": "is added to the scores",
}


def how_found(shown: Style | None, source: str) -> str:
    """Return how a convention was found: said by the user or by words, or shown by a call."""
    if not source and shown is None:
        return f"{NO_CONVENTION}: this one is the contract's"
    if not source:
        assumed = shown is not None and shown.meaning == "blocks"
        return f"as a probing call shows{_NOT_DOCUMENTED * assumed}"
    by = {"you": "as you say", "ids": "where it is False, the id is pad"}.get(source, "")
    by = by or f"by its {source}"
    return by if shown else f"{by}; a probing call does not show it"
