"""A whole Transformer on column vectors, as functions of one flat dictionary of parameters."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from attentest.faults.unusual.inputs_outputs import angles
from attentest.faults.unusual.member import member
from attentest.faults.unusual.multi_head_attention import Mask, checked, random
from attentest_spec import Choices, Sizes, Table
from attentest_spec.parameters import shapes, tied
from attentest_spec.torch import Recipe, TorchBackend

CHOICES = Choices.of({"fully_masked_row": "zero"})
LAYERS = ("encoder_layer", "encoder", "decoder_layer", "decoder", "model")


class Columns(nn.Module):
    """Parameters by canonical name, with _ for every dot; x is (B, D, L) throughout."""

    def __init__(self, component: str, sizes: Sizes) -> None:
        super().__init__()
        refuse_sizes(sizes)
        twins = tied(component, sizes, CHOICES)
        names = shapes(component, sizes, CHOICES)
        for name, twin in twins.items():
            if names[name] != names[twin]:
                raise ValueError(f"{name} {names[name]} cannot be {twin} {names[twin]}.")
        born = {name: first_values(name, shape) for name, shape in names.items()}
        kept = {name: born[twins.get(name, name)] for name in names}
        self.sizes = sizes
        self.held = nn.ParameterDict({name.replace(".", "/"): one for name, one in kept.items()})

    def get(self, *path: str) -> Tensor:
        """Return the parameter at `path`; parts without a name are left out."""
        found: Tensor = self.held["/".join(part for part in path if part)]
        return found

    def norm(self, path: str, x: Tensor) -> Tensor:
        """Normalise every column."""
        centred = x - x.mean(dim=1, keepdim=True)
        wide = centred.to(torch.promote_types(x.dtype, torch.float32))
        spread = (wide.square().mean(dim=1, keepdim=True) + 1e-5).sqrt().to(x.dtype)
        gain, bias = self.get(path, "gain")[:, None], self.get(path, "bias")[:, None]
        return centred / spread * gain + bias

    def attend(self, path: str, x: Tensor, memory: Tensor, mask: Mask) -> Tensor:
        """Attend from x (B, D, Q) to memory (B, D, K)."""
        asks, keys, values = (
            (self.get(path, name, "weight") @ given).view(
                len(given), self.sizes.heads, -1, given.shape[-1]
            )
            for name, given in (("query", x), ("key", memory), ("value", memory))
        )
        scores = keys.mT @ (asks / math.sqrt(asks.shape[2]))  # (B, H, K, Q)
        if mask is None:
            weights = scores.softmax(dim=-2)
        else:
            empty = ~mask.any(dim=-1, keepdim=True)
            weights = scores.masked_fill(~(mask | empty).mT, -math.inf).softmax(dim=-2)
            weights = weights.masked_fill(empty.mT, 0.0)
        return self.get(path, "output/weight") @ (values @ weights).view_as(x)

    def feed(self, path: str, x: Tensor) -> Tensor:
        """Apply the feed-forward network."""
        first, last = self.get(path, "inner/bias")[:, None], self.get(path, "outer/bias")[:, None]
        inner = (self.get(path, "inner/weight") @ x + first).relu()
        return self.get(path, "outer/weight") @ inner + last

    def layer(
        self, path: str, x: Tensor, mask: Mask, memory: Tensor | None = None, hide: Mask = None
    ) -> Tensor:
        """Apply one layer; with a memory, that of a decoder (`hide` is the memory's mask)."""
        start = f"{path}/" if path else ""
        own = self.attend(f"{start}self_attention", x, x, mask)
        x = self.norm(f"{start}self_attention_norm", x + own)
        if memory is not None:
            read = self.attend(f"{start}cross_attention", x, memory, hide)
            x = self.norm(f"{start}cross_attention_norm", x + read)
        return self.norm(f"{start}feed_forward_norm", x + self.feed(f"{start}feed_forward", x))

    def stack(
        self, path: str, x: Tensor, mask: Mask, memory: Tensor | None = None, hide: Mask = None
    ) -> Tensor:
        """Apply all layers."""
        start = f"{path}/" if path else ""
        for number in range(self.sizes.layers):
            x = self.layer(f"{start}layers/{number}", x, mask, memory, hide)
        return x

    def embed(self, side: str, tokens: Tensor) -> Tensor:
        """Return tokens (B, L) as columns (B, D, L) with positions."""
        width = self.sizes.d_model
        table = self.get(f"{side}_embedding", "weight")
        foreign = tokens[(tokens < 0) | (tokens >= len(table))].tolist()
        if foreign:
            raise IndexError(f"The id {foreign[0]} is not among the {len(table)} of the {side}.")
        rows = functional.embedding(tokens, table)
        turned = angles(tokens.shape[1], width, tokens.device)
        waves = torch.stack((turned.sin(), turned.cos()), dim=-1).flatten(1)[:, :width]
        return (rows * math.sqrt(width) + waves.to(rows.dtype)).mT


def refuse_sizes(sizes: Sizes) -> None:
    """Refuse impossible sizes."""
    for one in ("d_model", "heads", "d_ff", "layers", "source_vocabulary", "target_vocabulary"):
        if getattr(sizes, one) < 1:
            raise ValueError(f"{one} is {getattr(sizes, one)}, and has to be 1 at least.")
    if not 0 <= sizes.dropout < 1:
        raise ValueError(f"A dropout rate of {sizes.dropout} is not in [0, 1).")
    checked(sizes)


def first_values(name: str, shape: tuple[int, ...]) -> nn.Parameter:
    """Return the initial values of a parameter."""
    if len(shape) > 1:
        return random(*shape)
    return nn.Parameter(torch.full(shape, float(name.endswith("gain"))))


def layer(built: Columns, x: Tensor, mask: Mask = None) -> Tensor:
    """Call an encoder layer."""
    return built.layer("", x.mT, mask).mT


def encoder(built: Columns, x: Tensor, mask: Mask = None) -> Tensor:
    """Call an encoder."""
    return built.stack("", x.mT, mask).mT


def decoder_layer(
    built: Columns, x: Tensor, memory: Tensor, hide: Mask = None, mask: Mask = None
) -> Tensor:
    """Call a decoder layer."""
    return built.layer("", x.mT, mask, memory.mT, hide).mT


def decoder(
    built: Columns, x: Tensor, memory: Tensor, hide: Mask = None, mask: Mask = None
) -> Tensor:
    """Call a decoder."""
    return built.stack("", x.mT, mask, memory.mT, hide).mT


def encode(built: Columns, source: Tensor) -> Tensor:
    """Return the memory (B, S, D)."""
    keep = (source != built.sizes.source_pad)[:, None, None]
    return built.stack("encoder", built.embed("source", source), keep).mT


def decode(built: Columns, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
    """Return probabilities (B, T, V)."""
    past = torch.ones(2 * target.shape[1:], dtype=torch.bool, device=target.device).tril()
    keep = (target != built.sizes.target_pad)[:, None, None] & past
    hide = (source != built.sizes.source_pad)[:, None, None]
    state = built.stack("decoder", built.embed("target", target), keep, memory.mT, hide)
    logits = built.get("generator/weight") @ state + built.get("generator/bias")[:, None]
    return logits.softmax(dim=1).mT


def model(built: Columns, source: Tensor, target: Tensor) -> Tensor:
    """Call the whole model."""
    return decode(built, target, encode(built, source), source)


_CALLS = (layer, encoder, decoder_layer, decoder, model)


def _table(component: str) -> Table:
    names = shapes(component, Sizes(layers=1), CHOICES)
    starred = {name.replace("layers.0", "layers.*") for name in names}
    return {name: "held." + name.replace(".", "/") for name in starred}


def _recipe(component: str) -> Recipe:
    return Recipe(
        build=lambda sizes: Columns(component, sizes),
        call=_CALLS[LAYERS.index(component)],
        methods={"encode": encode, "decode": decode} if component == "model" else {},
        parameters=_table(component),
    )


MEMBERS: tuple[TorchBackend, ...] = (
    member(
        "columns",
        "a whole Transformer on column vectors, all parameters in one flat dictionary",
        {component: _recipe(component) for component in LAYERS},
        {"fully_masked_row": "zero"},
    ),
)
