"""The sizes of a whole model by the names of arguments: lists of names first, then their words."""

import inspect
import re
from collections.abc import Collection, Iterator

from torch import nn

from attentest.targets.adapt.components import words_of
from attentest.targets.adapt.names import INNER, RATIO, SIZES, WIDTH

ROWS = {
    "inputdim": "source_vocabulary",
    "inputsize": "source_vocabulary",
    "outputdim": "target_vocabulary",
    "outputsize": "target_vocabulary",
    "inputvocab": "source_vocabulary",
    "outputvocab": "target_vocabulary",
    "srcsize": "source_vocabulary",
    "tgtsize": "target_vocabulary",
    "nsrcvocab": "source_vocabulary",
    "ntgtvocab": "target_vocabulary",
    "ntokensrc": "source_vocabulary",
    "ntokentgt": "target_vocabulary",
    "idim": "source_vocabulary",
    "odim": "target_vocabulary",
}
"""Names that mean a vocabulary in a model's constructor, and a width in a layer's."""

_WIDTHS = ("hiddim", "hidsize", "hid", "latentdim", "statesize", "adim")
_EMBEDDED = (
    "embsize",
    "embdim",
    "embeddim",
    "embeddingdim",
    "embeddingsize",
    "embedsize",
    "dmodel",
)
"""Names of the width of a model: a hidden width of another name is the inner one, if it fits."""
_OF_LETTERS = {
    "aheads": "heads",
    "elayers": "layers",
    "dlayers": "layers",
    "eunits": "d_ff",
    "dunits": "d_ff",
}
"""Names whose first letter says the side or the attention, as ESPnet has them."""
_TARGET = ("tgt", "trg", "tar", "dec", "output", "dest", "dst")
_OUT = ("nout", "numout", "numberofout")
_LENGTHS = {
    *("srclen", "tgtlen", "srcseqlen", "tgtseqlen", "srcmaxlen", "tgtmaxlen", "nposition"),
    *("seqlength", "maxseq", "srcseqlength", "tgtseqlength", "maxlenseq", "context", "ctx"),
    *("contextwindow", "maxcontext", "maxctx", "maxcontextlength", "maxctxlen", "maxtimesteps"),
    *("peinput", "petarget", "peinp", "petar", "maxpositionencoding", "maximumpositionencoding"),
}

_OF_INPUTS = tuple(
    tuple(words.split())
    for words in (
        "dimq dimk dimv",
        "qdim kdim vdim",
        "dq dk dv",
        "dquery dkey dvalue",
        "dimquery dimkey dimvalue",
        "querydim keydim valuedim",
    )
)
"""Names of the widths of queries, keys and values: of a head where the model's is given, too."""


def is_input_width(name: str, held: Collection[str]) -> bool:
    """Say whether `name` is one of three widths of inputs, and no other of `held` is a width."""
    three = next((one for one in _OF_INPUTS if name in one), ())
    others = {*held} - {*three}
    return bool(three) and {*three} <= {*held} and not others & {*WIDTH, *SIZES["d_model"]}


_COUNT = r"(num(ber)?(of)?|nbr?(of)?|no(of)?|n|total)?"
_OF_SIDE = r"(src|source|tgt|trg|target|enc|dec|encoder|decoder|encode|decode|input|output|text)?"
_PATTERNS = {
    "vocabulary": r".*(vocab|voc|vocabulary|ntokens?|numtokens)(size|len|length|count|num|dim)?$"
    r"|(n|num)?(vocab|voc|vocabulary)(size|len|length)?(in|out|dest|dst|"
    + _OF_SIDE[1:-2]
    + r")?(size|len|length)?$"
    r"|(n|num|numberof)(src|source|tgt|trg|target|in|out)(words|tokens|types|symbols|ids)?$"
    r"|(n|num|numberof)?(words|tokens|types|symbols)(src|source|tgt|trg|target|in|out)$",
    "max_length": _COUNT + r"(max)?" + _OF_SIDE + r"(max)?(seq|sequence|sentence|context|pos|"
    r"position|positions|positional|ctx)(max)?(len|length|size)?" + _OF_SIDE + r"$"
    r"|(max)?" + _OF_SIDE + r"(max)?(len|length)" + _OF_SIDE + r"$"
    r"|max(imum)?(pos|position|positional)(enc|encoding|encodings|emb|embed|embedding|embeddings)"
    r"(len|length)?$|(n|num|max)blocksize$|(words?|sent|sentence|text|doc|tokens?)?(pad|padded|padding)(len|length)$"
    r"|(words?|sent|text|doc|tokens?)(max)?(len|length)$|padsize$",
    "heads": _COUNT
    + _OF_SIDE
    + r"(transformer)?(self)?(attn|attention|mha)?heads?(num|number|count|size)?$",
    "layers": _COUNT
    + _OF_SIDE * 2
    + r"(transformer)?(layers?|blocks?|stacks?|depth)(num|number|count)?$"
    r"|(num|number|n|nb|no|total)(of)?(en|de)(layers?|blocks?|stacks?)$"
    r"|(num|number|n|total)(of)?(encoders?|decoders?)$|(encoders?|decoders?)(num|number|count)$",
    "d_ff": r"(d|dim|n|hidden|size)?(of)?(ff|ffn|pff|fc|mlp|pf|pw|pwff|pointwise|feedforward|"
    r"feedfwd|intermediate|inner|internal)(net|network|layer)?(hidden|hid|inner)?"
    r"(dim|size|dimension|dimensionality|width|features|units|filters|d)?$",
    "d_model": r"(d|dim|n)?(of)?(model|emb|embed|embedding|word|wordvec|token|hid|hidn|hidden|"
    r"latent|feature)(vec|vector|layer|model)?(dim|size|dimension|dimensions|width|d|units)?$"
    r"|(emb|embd|embed|embedding)(hid|hidden)(dim|size|dimension|dimensions|width|d|units)?$"
    r"|(hid|hidden)(emb|embd|embed|embedding)(dim|size|dimension|dimensions|width|d|units)?$"
    r"|(emb|embd|embed|embedding)n$|n" + _OF_SIDE + r"state$|(num|n)(of)?modeldims?$|h(dim|size)$",
    "dropout": r".*drop(out)?(rate|proba?|p|probability|ratio)?$",
}
"""The words of names that no list has, and what they mean."""
LONE_WIDTHS = ("hdim", "hsize")
"""Names that are the width of the model where no other is, and may be that of a head else."""


NO_TOKEN = "-1"
"""The id that a model gets for each special token: no token of a call is one."""

_SPECIAL = re.compile(
    r"(src|source|tgt|trg|target|enc|dec|input|output)?"
    r"(sos|bos|eos|unk|start|end|begin|stop)(token)?(id|idx|index|ix)"
)


def is_special_id(name: str) -> bool:
    """Say whether an argument is the id of a token that begins or ends a text, or is unknown."""
    return _SPECIAL.fullmatch(name) is not None


def is_pad_id(name: str, default: object) -> bool:
    """Say whether an argument is an id of padding whose default is that of no token, as -1 is."""
    return type(default) is int and _is_pad(name)


def _is_pad(name: str) -> bool:
    """Say whether a name is that of an id of padding, and not of the position of padding."""
    return "pad" in name and "mask" not in name and not _OF_POSITION.match(name)


_OF_POSITION = re.compile(r"(src|source|tgt|trg|target|enc|dec|encoder|decoder)?pos")


def is_factor(name: str) -> bool:
    """Say whether an argument is a factor of the inner width, of a side or of both."""
    return re.sub(r"^(encoder|decoder|enc|dec)", "", name) in RATIO


def is_width(default: object) -> bool:
    """Say whether a default may be that of an inner width."""
    return isinstance(default, int) and not isinstance(default, bool) and default >= 8


def is_no_size(own: str, parameter: inspect.Parameter) -> bool:
    """Say whether an argument is annotated as a module, or has the name of a file or folder."""
    annotation = parameter.annotation
    is_part = inspect.isclass(annotation) and issubclass(annotation, nn.Module)
    return is_part or bool({"path", "file", "filename", "dir", "folder"} & {*words_of(own)})


def side_of(name: str, side: str) -> str:
    """Return "target" for an argument that is the target's by its name, or by `side`."""
    is_target = side == "decoder" or any(mark in name for mark in _TARGET)
    return "target" if is_target else "source"


def sizes_named(name: str, held: Collection[str], side: str) -> Iterator[str]:
    """Yield the sizes that an argument called `name` may be, beside the arguments `held`."""
    if _is_pad(name):
        target = any(mark in name for mark in _TARGET)
        yield "target_pad" if target else _sided("source_pad", side)
        return
    if name in _WIDTHS:
        inner = any(one in INNER and one not in WIDTH for one in held)
        is_beside = any(one in _EMBEDDED for one in held) and not inner
        yield from ("d_ff", "d_model") if is_beside else ("d_model",)
        return
    if re.search(r"(vocab(ulary)?(size)?|numtokens|ntokens?)$", name):
        target = any(mark in name for mark in _TARGET) or _is_beside_source(name, held)
        yield "target_vocabulary" if target else _sided("source_vocabulary", side)
        return
    if name in _LENGTHS or name in _OF_LETTERS:
        yield _OF_LETTERS.get(name, "max_length")
        return
    widths = [
        one for one in held if one in (*WIDTH, *_WIDTHS) and one not in ROWS and one not in INNER
    ]
    if name in ROWS and (widths or any(one in WIDTH and one not in ROWS for one in held)):
        yield _sided(ROWS[name], side)
        return
    found = [size for size, names in SIZES.items() if name in names]
    if set(found) == {"d_ff", "d_model"}:
        inner = any(one in INNER and one not in WIDTH for one in held)
        yield from ("d_ff", "d_model") if widths and not inner else ("d_model", "d_ff")
        return
    yield from (_sided(size, side) for size in found)


def _is_beside_source(name: str, held: Collection[str]) -> bool:
    """Say whether a vocabulary of no side is beside one that is the source's, by its name."""
    return any(name != one and one.endswith(name[-5:]) and _OF_SOURCE.search(one) for one in held)


_OF_SOURCE = re.compile(r"^n?(um)?(src|source)")


def _sided(size: str, side: str) -> str:
    """Return `size` of a side: what a decoder calls its vocabulary is that of the target."""
    if side == "decoder" and size in ("source_vocabulary", "source_pad"):
        return size.replace("source", "target")
    return size


def size_by_words(name: str, side: str) -> str:
    """Return the size that the words of an argument's name say, "" for none.

    This is for names that no list has; what is built has to have the shapes that follow.
    """
    found = next((size for size, one in _PATTERNS.items() if re.fullmatch(one, name)), "")
    if found != "vocabulary":
        return found or _of_one_side(name)
    target = any(mark in name for mark in _TARGET) or name.startswith(_OUT) or name.endswith("out")
    return "target_vocabulary" if target else _sided("source_vocabulary", side)


_PREFIXED = ("d_model", "d_ff", "heads", "layers", "max_length")


def _of_one_side(name: str) -> str:
    """Return the size of a name without the word of a side that it begins or ends with.

    So it is with the name of a model before it, as in `bert_num_heads`.
    """
    match = re.fullmatch(
        r"(?:encoder|decoder|enc|dec|albert|bert|vit|transformer|trm)(.{3,})"
        r"|(h|(?:d|n|num).+)(?:encoder|decoder|enc|dec)",
        name,
    )
    plain = match and (match[1] or match[2])
    if not plain or re.search(r"(encoder|decoder)", plain):
        return ""
    lists = [size for size in _PREFIXED if plain in SIZES[size]]
    if len(lists) == 1:
        return lists[0]
    found = next((size for size, one in _PATTERNS.items() if re.fullmatch(one, plain)), "")
    return "" if lists or found == "vocabulary" else found
