"""Sound code that is built from a configuration, or from keywords."""

from dataclasses import dataclass

from multi_head_attention import MultiHeadedAttention
from parts import LayerNorm, PositionwiseFeedForward
from torch import nn


class Block(nn.Module):
    """Reads attributes of a configuration that nothing describes."""

    def __init__(self, config):
        super().__init__()
        self.attn = MultiHeadedAttention(config.n_head, config.n_embd, config.dropout)
        self.ln_1 = nn.LayerNorm(config.n_embd, bias=config.bias)
        self.ln_2 = nn.LayerNorm(config.n_embd, eps=getattr(config, "rare", 1e-5))
        self.mlp = PositionwiseFeedForward(config.n_embd, 4 * config.n_embd, config.dropout)

    def forward(self, x, mask=None):
        normal = self.ln_1(x)
        x = x + self.attn(normal, normal, normal, mask)
        return x + self.mlp(self.ln_2(x))


class FeedForward(nn.Module):
    """Reads a configuration by key; one name is the inner width beside another."""

    def __init__(self, cfg):
        super().__init__()
        self.inner = nn.Linear(cfg["emb_dim"], cfg["hidden_dim"])
        self.outer = nn.Linear(cfg["hidden_dim"], cfg["emb_dim"])

    def forward(self, x):
        return self.outer(self.inner(x).relu())


class Flavoured(FeedForward):
    def __init__(self, config):
        nn.Module.__init__(self)
        self.flavour = not config.flavour
        self.inner = nn.Linear(config.d_model, config.d_ff)
        self.outer = nn.Linear(config.d_ff, config.d_model)


@dataclass
class Settings:
    width: int = 8
    activation: str = "relu"


class Norm(LayerNorm):
    def __init__(self, settings):
        super().__init__(settings.width)
        assert settings.activation == "relu"


class Keywords(nn.Module):
    def __init__(self, **kwargs):
        super().__init__()
        self.w_1 = nn.Linear(kwargs["d_model"], kwargs["d_ff"])
        self.w_2 = nn.Linear(kwargs["d_ff"], kwargs["d_model"])
        self.dropout = nn.Dropout(kwargs.get("dropout", 0.1))

    def forward(self, x):
        return self.w_2(self.dropout(self.w_1(x).relu()))


class HandedOn(PositionwiseFeedForward):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)


class HeadWidth(nn.Module):
    """Is built with the width of a head."""

    def __init__(self, dim, heads, dim_head):
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(dim, heads * dim_head, bias=False)
        self.to_k = nn.Linear(dim, heads * dim_head, bias=False)
        self.to_v = nn.Linear(dim, heads * dim_head, bias=False)
        self.to_out = nn.Linear(heads * dim_head, dim)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x):
        q, k, v = (self.split(one(x)) for one in (self.to_q, self.to_k, self.to_v))
        weights = (q @ k.mT * q.size(-1) ** -0.5).softmax(-1)
        return self.to_out((weights @ v).transpose(1, 2).flatten(-2))


class Channels(nn.LayerNorm):
    """Hands its first argument on by its place, and the rest as keywords."""

    def __init__(self, num_channels, eps=1e-6, affine=True, **kwargs):
        super().__init__(num_channels, eps=eps, elementwise_affine=affine, **kwargs)


class Chosen(nn.Module):
    """Is built with the activation itself."""

    def __init__(self, width, hidden, activation):
        super().__init__()
        self.inner = nn.Linear(width, hidden)
        self.outer = nn.Linear(hidden, width)
        self.activation = activation

    def forward(self, x):
        return self.outer(self.activation(self.inner(x)))


class Annotated(PositionwiseFeedForward):
    """Has an annotation that Python cannot evaluate."""

    def __init__(self, d_model, d_ff, mode: """"str" | None""" = None):
        super().__init__(d_model, d_ff)


class OddNames(PositionwiseFeedForward):
    """Calls its widths by names that say nothing."""

    def __init__(self, broad, narrow):
        super().__init__(broad, narrow)
