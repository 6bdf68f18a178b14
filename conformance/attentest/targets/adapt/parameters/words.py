"""The meaning of parameter names: their words, and the roles that these stand for.

A name that says its role is never overruled by what the numbers show: a query projection that is
used for the keys is a mistake to be found, and not a map to be guessed.
"""

import re
from collections.abc import Mapping

WEIGHT = frozenset({"w", "weight", "weights", "kernel", "matrix", "mat"})
GAIN = frozenset({"a", "g", "gain", "gamma", "scale", "alpha", "weight", "w"})
BIAS = frozenset({"b", "bias", "biases", "beta", "shift", "offset"})

CROSS = frozenset(
    {
        "cross",
        "src",
        "source",
        "enc",
        "encoder",
        "encdec",
        "memory",
        "mem",
        "context",
        "ctx",
        "inter",
        "mca",
        "ca",
        "xattn",
        "xa",
    }
)
SELF = frozenset(
    {
        "self",
        "masked",
        "mask",
        "causal",
        "tgt",
        "trg",
        "target",
        "dec",
        "decoder",
        "sa",
        "msa",
    }
)
ATTENTION = frozenset({"attention", "attn", "att", "mha", "heads"}) | SELF
FEED = frozenset(
    {
        "feed",
        "forward",
        "feedforward",
        "ff",
        "ffn",
        "ffwd",
        "mlp",
        "fc",
        "pos",
        "positionwise",
        "final",
    }
)
SOURCE = frozenset({"src", "source", "enc", "encoder", "input", "inp"})
TARGET = frozenset({"tgt", "trg", "target", "dec", "decoder", "output"})
HEAD = frozenset(
    {
        "generator",
        "proj",
        "projection",
        "head",
        "lm",
        "out",
        "output",
        "fc",
        "classifier",
        "logits",
        "linear",
    }
)

_PROJECTIONS: Mapping[str, frozenset[str]] = {
    "query": frozenset({"q", "qs", "query", "queries"}),
    "key": frozenset({"k", "ks", "key", "keys"}),
    "value": frozenset({"v", "vs", "value", "values", "val"}),
}
_OUTPUT = frozenset(
    {
        "o",
        "out",
        "output",
        "outputs",
        "merge",
        "unify",
        "unifyheads",
        "combine",
    }
)
_FEED_FORWARD = {
    "gate": "gate",
    "gating": "gate",
    "up": "inner",
    "value": "inner",
    "down": "outer",
    "out": "outer",
    "output": "outer",
    "wo": "outer",
}
_LETTERS = {"q": "query", "k": "key", "v": "value"}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_GLUED = re.compile(
    r"(to|w|b|c|proj)?(q|k|v|o|qkv|kqv|vqk|qvk|kvq|vkq|kv|vk|qk"
    r"|query|queries|key|keys|value|values)(proj|lin|w)?"
)


def words(name: str) -> tuple[str, ...]:
    """Return the words of a dotted name in lower case: "attn.W_q1" gives attn, w, q and 1."""
    found: list[str] = []
    for raw in _WORD.findall(name):
        word = raw.lower()
        glued = _GLUED.fullmatch(word)
        found += [part for part in glued.groups() if part] if glued else [word]
    return tuple(found)


def projections(name: str) -> tuple[str, ...]:
    """Return which of query, key, value and output the name says it holds, in its order."""
    found: list[str] = []
    for word in words(name):
        found += [role for role, known in _PROJECTIONS.items() if word in known]
        if len(word) > 1 and set(word) <= set(_LETTERS) and len(set(word)) == len(word):
            found += [_LETTERS[letter] for letter in word]
    if not found and _OUTPUT & set(words(name)):
        return ("output",)
    return tuple(dict.fromkeys(found))


def ordinal(name: str) -> tuple[int | None, bool]:
    """Return the last number in a name, and whether an attribute bears it: "norm1", not "norms.1".

    The number in an attribute was written by hand; the place in a list says less.
    """
    numbers = re.findall(r"\d+", name)
    if not numbers:
        return None, False
    return int(numbers[-1]), numbers[-1] not in name.split(".")


def stem(name: str) -> tuple[str, ...]:
    """Return the words of a name without those that tell weight from bias."""
    return tuple(word for word in words(name) if word not in WEIGHT | GAIN | BIAS)


def beyond(names: list[str]) -> list[str]:
    """Return the names without the dotted segments that they all begin with."""
    split = [name.split(".") for name in names]
    shared = 0
    while all(len(one) > shared + 1 for one in split) and len({one[shared] for one in split}) == 1:
        shared += 1
    return [".".join(one[shared:]) for one in split]


def feed_forward_role(name: str) -> str:
    """Return the part of a gated feed-forward network that `name` says: "" for none or several."""
    found = {_FEED_FORWARD[word] for word in words(name) if word in _FEED_FORWARD}
    return found.pop() if len(found) == 1 else ""


def says_sink(name: str) -> bool:
    """Say whether `name` is that of the scores of nothing that heads have beside their keys."""
    return bool({"sink", "sinks"} & set(words(name)))


_NORM_WORDS = frozenset({"norm", "layernorm", "rmsnorm", "ln", "layer", "rms"})


def norm_of_heads(name: str) -> str:
    """Return the projection that the norm called `name` follows: "query" or "key", "" for none."""
    own = words(name.removesuffix(".weight").rpartition(".")[2])
    said = [one for one in own if one not in _NORM_WORDS]
    normed = len(said) == 1 and len(own) > 1
    return next((r for r in ("query", "key") if normed and said[0] in _PROJECTIONS[r]), "")
