"""Functions that make masks of other arguments than tokens and a pad id, right and wrong."""

import numpy as np
import torch

PAD = 2


def get_subsequent_mask(seq):
    length = seq.size(1)
    return (1 - torch.triu(torch.ones((1, length, length)), diagonal=1)).bool()


def causal_mask(x):
    return torch.ones(x.size(1), x.size(1), dtype=torch.bool).triu(1)


def subsequent_mask(queries, keys):
    return torch.ones(queries, keys).tril()


def get_attn_subsequence_mask(seq):
    square = np.triu(np.ones([seq.size(0), seq.size(1), seq.size(1)]), k=1)
    return torch.from_numpy(square).byte()


def make_pad_mask(lengths, max_len):
    return torch.arange(max_len)[None] >= lengths[:, None]


def padding_mask(seq):
    return (seq != PAD)[:, None, None]


def get_attn_pad_mask(seq_q, seq_k):
    pads = seq_k.eq(PAD)[:, None]
    return pads.expand(-1, seq_q.size(1), -1)


def make_tgt_mask(tgt):
    square = torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool, device=tgt.device)
    return (tgt != PAD)[:, None, None] & square.tril()


def wrong_subsequent_mask(seq):
    return torch.ones(1, seq.size(1), seq.size(1), dtype=torch.bool).tril(1)


def wrong_pad_mask(lengths, max_len):
    return torch.arange(max_len)[None] > lengths[:, None]


def wrong_padding_mask(seq):
    return (seq != PAD).roll(1, -1)[:, None, None]


def batch_mask(lengths):
    """Make masks as long as the longest sequence."""
    return torch.arange(int(lengths.max()), device=lengths.device)[None] < lengths[:, None]


def mask_of_heads(lengths, number):
    """Make masks for a number of heads, which no input of the spec says."""
    return batch_mask(lengths)[:, None].expand(-1, number, -1)


def create_masks(src, trg, pad):
    square = torch.ones(trg.size(1), trg.size(1), dtype=torch.bool, device=trg.device)
    return (src != pad)[:, None], (trg != pad)[:, None] & square.tril()


def create_mask(src, tgt):
    """Make the four masks of torch.nn.Transformer, of tokens with the sequence first."""
    later = torch.full((len(tgt), len(tgt)), -torch.inf).triu(1)
    seen = torch.zeros(len(src), len(src), dtype=torch.bool)
    return seen, later, (src == PAD).T, (tgt == PAD).T


def make_all_masks(src, tgt, pad_id):
    """Make both masks of padding and the one of later tokens; True is hidden."""
    later = torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool).triu(1)
    return src.eq(pad_id), tgt.eq(pad_id), later


def make_masks(source, target, pad):
    square = torch.ones(target.size(1), target.size(1), dtype=torch.bool)
    return {"source": (source != pad)[:, None], "target": square.tril(1)[None]}


def get_masks(src, tgt):
    """Make masks that hide no padding of the source."""
    return torch.ones(src.size(1), src.size(1)), torch.ones(tgt.size(1), tgt.size(1)).tril()


def get_tgt_mask(tgt, pad_idx, device):
    square = torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool, device=device)
    return (tgt != pad_idx)[:, None, None] & square.tril()


def make_causal_mask(tgt_len, dtype, device):
    lowest = torch.finfo(dtype).min
    return torch.full((tgt_len, tgt_len), lowest, dtype=dtype, device=device).triu(1)[None, None]
