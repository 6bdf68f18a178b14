"""The parameter maps that a structure may have, with the choices that they show."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from torch import nn

from attentest_spec import Sizes, Table, nested
from attentest_spec.choices import Value
from attentest_transformers_causal.structure import (
    ATTENTION,
    FEED_FORWARD,
    NotJudged,
    Structure,
    attention_tables,
    network_tables,
    norm_table,
)

_LAYOUTS: Mapping[str, tuple[tuple[Mapping[str, Value], tuple[str, ...]], ...]] = {
    "NANF": (
        ({"block_norms": "pre"}, (f"{ATTENTION}_norm", f"{FEED_FORWARD}_norm")),
        (
            {"block_norms": "pre", "block_layout": "parallel-two-norms"},
            (f"{ATTENTION}_norm", f"{FEED_FORWARD}_norm"),
        ),
    ),
    "NNAF": (
        (
            {"block_norms": "pre", "block_layout": "parallel-two-norms"},
            (f"{ATTENTION}_norm", f"{FEED_FORWARD}_norm"),
        ),
    ),
    "NAF": (
        ({"block_norms": "pre", "block_layout": "parallel-one-norm"}, (f"{ATTENTION}_norm",)),
    ),
    "ANFN": (
        ({"block_norms": "post"}, (f"{ATTENTION}_norm", f"{FEED_FORWARD}_norm")),
        ({"block_norms": "post-branch"}, (f"{ATTENTION}_norm", f"{FEED_FORWARD}_norm")),
    ),
    "NANNFN": (
        (
            {"block_norms": "sandwich"},
            (
                f"{ATTENTION}_norm", f"{ATTENTION}_branch_norm",
                f"{FEED_FORWARD}_norm", f"{FEED_FORWARD}_branch_norm",
            ),
        ),
    ),
}  # fmt: skip


def tables(found: Structure, sizes: Sizes) -> Iterator[tuple[dict[str, Any], Mapping[str, Value]]]:
    """Yield the parameter maps with the choices that they imply: where the norms are."""
    if found.signature not in _LAYOUTS:
        raise NotJudged(f"the order of its norms and sublayers is {found.signature}")
    layouts = _LAYOUTS[found.signature]
    attentions = list(attention_tables(found))
    networks = list(network_tables(found, sizes.d_ff))
    outside = _outside(found)
    for attention, network, (choices, names) in product(attentions, networks, layouts):
        inner = {**attention, **_head_norms(found), **_sinks(found)}
        block = {**nested(ATTENTION, "", inner)}
        block |= nested(FEED_FORWARD, "", network)
        for canonical, own in zip(names, found.norms, strict=True):
            block |= norm_table(found.inside(own), canonical, own)
        yield {**outside, **nested("layers.*", f"{found.layers}.*", block)}, choices


def _outside(found: Structure) -> dict[str, Any]:
    """Return the table of what is outside of the blocks."""
    table: dict[str, Any] = {"embedding": embeddings(found)[0]}
    if len(embeddings(found)) > 1:
        table["positions"] = embeddings(found)[1]
    before, after = outer_norms(found)
    for canonical, names in (("embedding_norm", before), ("norm", after)):
        for name in names:
            table |= norm_table(found.modules[name], canonical, name)
    generator = found.model.get_output_embeddings()
    name = next(name for name, one in found.modules.items() if one is generator)
    return {**table, "generator": name}


def embeddings(found: Structure) -> list[str]:
    """Return the names of the embedding, and of the table of positions where there is one."""
    of_tokens = found.model.get_input_embeddings()
    names = [one for one in found.outside if isinstance(found.modules[one], nn.Embedding)]
    own = [one for one in names if found.modules[one] is of_tokens]
    others = [one for one in names if found.modules[one] is not of_tokens]
    if len(own) != 1 or len(others) > 1:
        raise NotJudged(f"it has the embeddings {', '.join(names)}")
    return own + others


def outer_norms(found: Structure) -> tuple[list[str], list[str]]:
    """Return the norms before the blocks and after them, at most one each."""
    start = next(at for at, one in enumerate(found.order) if one.startswith(f"{found.layers}."))
    norms = [one for one in found.outside if one.lower().find("norm") >= 0 or "ln" in one]
    norms = [one for one in norms if not isinstance(found.modules[one], nn.Embedding | nn.Linear)]
    before = [one for one in norms if found.order.index(one) < start]
    after = [one for one in norms if one not in before]
    if len(before) > 1 or len(after) > 1:
        raise NotJudged(f"it has the norms {', '.join(norms)}")
    return before, after


def _head_norms(found: Structure) -> dict[str, Any]:
    """Return the table of the norms of queries and keys."""
    table: dict[str, Any] = {}
    for name in found.head_norms:
        letter = name.rpartition(".")[2][:1]
        if letter not in "qk":
            raise NotJudged(f"its attention has the norm {name}")
        canonical = "query_norm" if letter == "q" else "key_norm"
        table |= norm_table(found.inside(name), canonical, name)
    return table


def _sinks(found: Structure) -> dict[str, Any]:
    """Return the table of the scores of nothing, which the library calls sinks."""
    own = dict(found.inside(found.attention).named_parameters(recurse=False))
    name = next((one for one in own if one.endswith("sinks")), "")
    return {"sink.score": f"{found.attention}.{name}"} if name else {}


def shown_by(table: Table) -> dict[str, Value]:
    """Return the choices that the parameters show: gates and biases."""
    names = [one.removeprefix("layers.*.") for one in table]
    biased = tuple(
        part for part in ("query", "key", "value", "output") if f"{ATTENTION}.{part}.bias" in names
    )
    kinds = {
        (): "none",
        ("query", "key", "value", "output"): "present",
        ("output",): "output-alone",
        ("query", "value", "output"): "all-but-key",
        ("query", "key", "value"): "all-but-output",
    }
    if biased not in kinds:
        raise NotJudged(f"its attention has biases of {', '.join(biased)} alone")
    parts = ("gate", "inner", "outer")
    maps = [one for one in parts if f"{FEED_FORWARD}.{one}.weight" in names]
    in_network = [one for one in maps if f"{FEED_FORWARD}.{one}.bias" in names]
    if in_network and in_network != maps:
        raise NotJudged(f"its network has a bias of {', '.join(in_network)} alone")
    sink = f"{ATTENTION}.sink.score" in names
    return {
        "attention_sink": "per-head" if sink else "none",
        "projection_bias": kinds[biased],
        "feed_forward_gate": "gated" if f"{FEED_FORWARD}.gate.weight" in names else "none",
        "feed_forward_bias": "present" if in_network else "none",
    }
