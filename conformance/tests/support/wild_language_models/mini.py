"""A configuration node, GELU by its tanh, and three projections."""

import math

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


class CfgNode:
    def __init__(self, **kwargs):
        self.__dict__.update(kwargs)


class NewGELU(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        assert config.n_embd % config.n_head == 0
        self.key = nn.Linear(config.n_embd, config.n_embd)
        self.query = nn.Linear(config.n_embd, config.n_embd)
        self.value = nn.Linear(config.n_embd, config.n_embd)
        self.attn_drop = nn.Dropout(config.attn_pdrop)
        self.resid_drop = nn.Dropout(config.resid_pdrop)
        self.proj = nn.Linear(config.n_embd, config.n_embd)
        self.n_head = config.n_head

    def forward(self, x):
        b, t, c = x.size()
        shape = (b, t, self.n_head, c // self.n_head)
        k, q, v = (f(x).view(shape).transpose(1, 2) for f in (self.key, self.query, self.value))
        att = (q @ k.mT) / math.sqrt(k.size(-1))
        late = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        att = self.attn_drop(att.masked_fill(late, -torch.inf).softmax(-1))
        return self.resid_drop(self.proj((att @ v).transpose(1, 2).reshape(b, t, c)))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln1 = nn.LayerNorm(config.n_embd)
        self.ln2 = nn.LayerNorm(config.n_embd)
        self.attn = CausalSelfAttention(config)
        self.mlp = nn.Sequential(
            nn.Linear(config.n_embd, 4 * config.n_embd),
            NewGELU(),
            nn.Linear(4 * config.n_embd, config.n_embd),
            nn.Dropout(config.resid_pdrop),
        )

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    """The model; its configuration names a published one, or gives the sizes."""

    @staticmethod
    def get_default_config():
        return CfgNode(
            model_type="gpt", n_layer=None, n_head=None, n_embd=None, vocab_size=None,
            block_size=None, embd_pdrop=0.1, resid_pdrop=0.1, attn_pdrop=0.1,
        )  # fmt: skip

    def __init__(self, config):
        super().__init__()
        assert config.vocab_size is not None
        self.block_size = config.block_size
        type_given = config.model_type is not None
        params_given = all(
            one is not None for one in (config.n_layer, config.n_head, config.n_embd)
        )
        assert type_given ^ params_given
        self.tok_emb = nn.Embedding(config.vocab_size, config.n_embd)
        self.pos_emb = nn.Parameter(torch.zeros(1, config.block_size, config.n_embd))
        self.drop = nn.Dropout(config.embd_pdrop)
        self.blocks = nn.Sequential(*[Block(config) for _ in range(config.n_layer)])
        self.ln_f = nn.LayerNorm(config.n_embd)
        self.head = nn.Linear(config.n_embd, config.vocab_size, bias=False)

    def forward(self, idx, targets=None):
        t = idx.size(1)
        assert t <= self.block_size, f"{t} tokens, and {self.block_size} fit"
        x = self.drop(self.tok_emb(idx) + self.pos_emb[:, :t])
        logits = self.head(self.ln_f(self.blocks(x)))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss
