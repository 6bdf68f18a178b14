"""Feed-forward networks, norms, embeddings and the other small parts, in unlike styles."""

import torch
from styles_of_attention import bare
from styles_of_storage import TurnedLinear
from torch import nn
from torch.nn import functional


class Numbered(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.fc1 = nn.Linear(sizes.d_model, sizes.d_ff)
        self.fc2 = nn.Linear(sizes.d_ff, sizes.d_model)

    def forward(self, x):
        return self.fc2(functional.relu(self.fc1(x)))


class BackToFront(nn.Module):
    """The outer map is registered first."""

    def __init__(self, sizes):
        super().__init__()
        self.down = nn.Linear(sizes.d_ff, sizes.d_model)
        self.up = nn.Linear(sizes.d_model, sizes.d_ff)

    def forward(self, x):
        return self.down(functional.relu(self.up(x)))


def in_a_row(sizes):
    return nn.Sequential(
        nn.Linear(sizes.d_model, sizes.d_ff),
        nn.GELU(),
        nn.Dropout(sizes.dropout),
        nn.Linear(sizes.d_ff, sizes.d_model),
    )


class Turned(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.c_fc = TurnedLinear(sizes.d_ff, sizes.d_model)
        self.c_proj = TurnedLinear(sizes.d_model, sizes.d_ff)

    def forward(self, x):
        return self.c_proj(functional.gelu(self.c_fc(x)))


class Convolutions(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.conv1 = nn.Conv1d(sizes.d_model, sizes.d_ff, 1)
        self.conv2 = nn.Conv1d(sizes.d_ff, sizes.d_model, 1)

    def forward(self, x):
        return self.conv2(functional.relu(self.conv1(x.transpose(1, 2)))).transpose(1, 2)


class Bare(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.W1, self.b1 = bare(sizes.d_model, sizes.d_ff), bare(sizes.d_ff)
        self.W2, self.b2 = bare(sizes.d_ff, sizes.d_model), bare(sizes.d_model)

    def forward(self, x):
        return functional.silu(x @ self.W1 + self.b1) @ self.W2 + self.b2


class BiasLeftOut(Numbered):
    """A mistake: no bias in the first map."""

    def __init__(self, sizes):
        super().__init__(sizes)
        self.fc1 = nn.Linear(sizes.d_model, sizes.d_ff, bias=False)


class Gated(Numbered):
    """Not the spec's network: a third matrix."""

    def __init__(self, sizes):
        super().__init__(sizes)
        self.gate = nn.Linear(sizes.d_model, sizes.d_ff)

    def forward(self, x):
        return self.fc2(functional.silu(self.gate(x)) * self.fc1(x))


class ThreeMaps(Numbered):
    """Not the spec's network: two more matrices."""

    def __init__(self, sizes):
        super().__init__(sizes)
        self.second = nn.Linear(sizes.d_model, sizes.d_ff)
        self.third = nn.Linear(sizes.d_model, sizes.d_ff)

    def forward(self, x):
        return self.fc2(functional.relu(self.fc1(x)) + self.second(x) * self.third(x))


FEED_FORWARD = {
    Numbered: "relu",
    BackToFront: "relu",
    in_a_row: "gelu",
    Turned: "gelu",
    Convolutions: "relu",
    Bare: "silu",
}


class Norm(nn.Module):
    """A norm whose gain and bias are called as a subclass says."""

    names = ("gamma", "beta")

    def __init__(self, sizes):
        super().__init__()
        for name, start in zip(self.names, (1.0, 0.0), strict=True):
            setattr(self, name, nn.Parameter(torch.full((sizes.d_model,), start)))

    def forward(self, x):
        gain, bias = (getattr(self, name) for name in self.names)
        return functional.layer_norm(x, x.shape[-1:], gain, bias)


class Lettered(Norm):
    names = ("a_2", "b_2")


class OneLetter(Norm):
    names = ("g", "b")


class Nameless(nn.Module):
    """Names that say nothing, the bias first: what is born as one is the gain."""

    def __init__(self, sizes):
        super().__init__()
        self.first = nn.Parameter(torch.zeros(sizes.d_model))
        self.second = nn.Parameter(torch.ones(sizes.d_model))

    def forward(self, x):
        return functional.layer_norm(x, x.shape[-1:], self.second, self.first)


class BiasFirst(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(1, 1, sizes.d_model))
        self.scale = nn.Parameter(torch.ones(1, 1, sizes.d_model))

    def forward(self, x):
        return functional.layer_norm(x, x.shape[-1:]) * self.scale[0, 0] + self.shift[0, 0]


def library_norm(sizes):
    return nn.LayerNorm(sizes.d_model)


class GainAndBiasSwapped(Norm):
    """A mistake: the parameter named gamma is added, and the one named beta multiplies."""

    def forward(self, x):
        return functional.layer_norm(x, x.shape[-1:], self.beta, self.gamma)


LAYER_NORM = (Norm, Lettered, OneLetter, Nameless, BiasFirst, library_norm)


class Sublayer(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layer_norm = Lettered(sizes)

    def forward(self, x, sublayer):
        return x + sublayer(self.layer_norm(x))


class Lookup(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.lut = nn.Embedding(sizes.source_vocabulary, sizes.d_model)

    def forward(self, tokens):
        return self.lut(tokens) * self.lut.weight.shape[1] ** 0.5


class BareTable(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.table = bare(sizes.source_vocabulary, sizes.d_model)

    def forward(self, tokens):
        return functional.embedding(tokens, self.table)


EMBEDDING = {Lookup: "sqrt-d", BareTable: "none"}


class Head(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.lm_head = nn.Linear(sizes.d_model, sizes.target_vocabulary)

    def forward(self, x):
        return self.lm_head(x)


class BareHead(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.W = bare(sizes.d_model, sizes.target_vocabulary)
        self.b = bare(sizes.target_vocabulary)

    def forward(self, x):
        return (x @ self.W + self.b).log_softmax(-1)


GENERATOR = {Head: "logits", BareHead: "log-probabilities"}


class Positions(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.embed_positions = nn.Embedding(sizes.max_length, sizes.d_model)

    def forward(self, x):
        return x + self.embed_positions(torch.arange(x.size(1), device=x.device))


class BarePositions(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.pos_embedding = bare(1, sizes.max_length, sizes.d_model)

    def forward(self, x):
        if x.size(1) > self.pos_embedding.size(1):
            raise ValueError(f"{x.size(1)} positions, and the table has fewer")
        return x + self.pos_embedding[:, : x.size(1)]


def norm_without_bias(sizes):
    return nn.LayerNorm(sizes.d_model, bias=False)


def feed_forward_without_biases(sizes):
    return nn.Sequential(
        nn.Linear(sizes.d_model, sizes.d_ff, bias=False),
        nn.ReLU(),
        nn.Linear(sizes.d_ff, sizes.d_model, bias=False),
    )


def head_without_bias(sizes):
    return nn.Linear(sizes.d_model, sizes.target_vocabulary, bias=False)
