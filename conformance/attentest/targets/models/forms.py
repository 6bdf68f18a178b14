"""The forms in which code takes its masks, as expressions of the contract's own masks.

The names in an expression are those of a written adapter: `source_keep` (B, S) and `target_keep`
(B, T) are True for real tokens, `causal` (T, T) is True on and below the diagonal.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

_ENTRIES = {
    ("bool", "keep"): ("{}", "True may be attended"),
    ("bool", "blocks"): ("~({})", "True blocks"),
    ("int", "keep"): ("({}).long()", "the integer 1 may be attended"),
    ("float", "keep"): ("({}).to(dtype)", "the float 1.0 may be attended"),
    ("int", "blocks"): ("(~({})).long()", "the integer 1 blocks"),
    ("float", "blocks"): ("(~({})).to(dtype)", "the float 1.0 blocks"),
    # Last: (1 - mask) * -10000 takes a mask of 0 and minus infinity too, and means 1 and 0.
    ("float", "additive"): ("additive({}, dtype)", "added to the scores, 0 or minus infinity"),
}

_SHAPES = {
    "source": {
        "(B, 1, 1, S)": "source_keep[:, None, None, :]",
        "(B, 1, S)": "source_keep[:, None, :]",
        "(B, S)": "source_keep",
        "(B, 1, S, S)": "source_keep[:, None, None, :].expand(-1, 1, source.shape[1], -1)",
        "(B, S, S)": "source_keep[:, None, :].expand(-1, source.shape[1], -1)",
    },
    "target": {
        "(B, 1, T, T)": "target_keep[:, None, None, :] & causal",
        "(B, T, T)": "target_keep[:, None, :] & causal",
        "(B, T)": "target_keep",
        "(T, T)": "causal",
    },
    "memory": {
        "(B, 1, 1, S)": "source_keep[:, None, None, :]",
        "(B, 1, S)": "source_keep[:, None, :]",
        "(B, S)": "source_keep",
        "(B, 1, T, S)": "source_keep[:, None, None, :].expand(-1, 1, target.shape[1], -1)",
        "(B, T, S)": "source_keep[:, None, :].expand(-1, target.shape[1], -1)",
    },
    "target padding": {"(B, T)": "target_keep"},
    "causal": {"(T, T)": "causal"},
    "open": {
        "(S, S), nothing hidden": "torch.ones(source.shape[1], source.shape[1]).bool()",
    },
}
"""The forms of a mask argument, by role."""

_OTHERS = {
    "source padding": ("source",),
    "memory padding": ("memory",),
    "target padding": ("target padding", "memory"),  # "dec_padding_mask" is that of the memory
    "causal": ("causal", "target"),
}
"""The roles that an argument may have whose name says one of padding, or of order."""

LENGTHS = "lengths"
"""The meaning of an argument that says how long each sequence is."""

_LENGTHS = {"source length": "source_keep", "target length": "target_keep"}

ADDITIVE = '''\
def additive(keep, dtype):
    """Return what is added to the scores: 0 where `keep` is True, and minus infinity."""
    return torch.zeros(keep.shape, dtype=dtype, device=keep.device).masked_fill(
        ~keep, float("-inf")
    )
'''
"""The helper of the expressions that add to the scores."""


@dataclass(frozen=True)
class Form:
    """One way to write a mask: the expression for it, its meaning, and both in words."""

    code: str
    meaning: str
    words: str
    axes: int = 0

    @property
    def convention(self) -> str:
        """The meaning of an entry, in words, whatever the shape."""
        return self.words.partition(";")[0]


def forms(role: str, meanings: Collection[str] = ()) -> Iterator[Form]:
    """Yield the forms of a mask with `role`, the contract's own first; `meanings` narrow them."""
    if role == "open":
        yield Form("None", "", "None")
    if role in _LENGTHS:
        code = f"{_LENGTHS[role]}.sum(1)"
        yield Form(code, LENGTHS, "the number of tokens; (B,)")
        yield Form(f"{code}.tolist()", LENGTHS, "the number of tokens; a list")
        return
    for (_, meaning), (written, words) in _ENTRIES.items():
        if meanings and meaning not in meanings:
            continue
        shapes = {k: v for one in _OTHERS.get(role, (role,)) for k, v in _SHAPES[one].items()}
        for shape, code in shapes.items():
            yield Form(written.format(code), meaning, f"{words}; {shape}", shape.count(",") + 1)
