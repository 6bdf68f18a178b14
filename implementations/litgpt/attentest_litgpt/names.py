"""The names of litgpt for the canonical parameters."""

from litgpt.config import Config

from attentest_litgpt.reading import block_norms
from attentest_spec import Place, Table, nested


def norm(config: Config) -> Table:
    """Return the parameter map of a norm."""
    layer = config.norm_class_name == "LayerNorm"
    return {"gain": "weight", "bias": "bias"} if layer else {"gain": "weight"}


def heads(config: Config) -> Table:
    """Return the parameter map of attention: one matrix of all queries, all keys, all values."""
    packed = {part: Place("qkv", span=part) for part in ("query", "key", "value")}
    norms = {f"{part}_norm": f"norm_{part[0]}" for part in ("query", "key") if config.norm_qk}
    inner = {name: nested(name, own, norm(config)) for name, own in norms.items()}
    return {**packed, "output": "proj", **{k: v for one in inner.values() for k, v in one.items()}}


def network(config: Config) -> Table:
    """Return the parameter map of the feed-forward network."""
    if config.mlp_class_name == "GptNeoxMLP":
        return {"inner": "fc", "outer": "proj"}
    return {"gate": "fc_1", "inner": "fc_2", "outer": "proj"}


def block(config: Config) -> Table:
    """Return the parameter map of a block."""
    before = {"self_attention_norm": "norm_1", "feed_forward_norm": "norm_2"}
    after = ("post_attention_norm", "post_mlp_norm")
    match block_norms(config):
        case "post-branch":
            norms = dict(zip(before, after, strict=True))
        case "sandwich":
            branch = ("self_attention_branch_norm", "feed_forward_branch_norm")
            norms = {**before, **dict(zip(branch, after, strict=True))}
        case _:
            norms = before
    if config.shared_attention_norm:
        del norms["feed_forward_norm"]
    table = {**nested("self_attention", "attn", heads(config))}
    table |= nested("feed_forward", "mlp", network(config))
    for name, own in norms.items():
        table |= nested(name, own, norm(config))
    return table


def model(config: Config) -> Table:
    """Return the parameter map of the language model."""
    return {
        "embedding": "transformer.wte",
        **nested("layers.*", "transformer.h.*", block(config)),
        **nested("norm", "transformer.ln_f", norm(config)),
        "generator": "lm_head",
    }
