"""Masks as people make them, all sound."""

import torch


def make_pad_mask(seq, pad_idx):
    return (seq != pad_idx).unsqueeze(1).unsqueeze(2)


def padding_mask(src, pad_token):
    """Return a mask that is True where a token is padding, (batch, length)."""
    return src == pad_token


def subsequent_mask(size):
    return torch.triu(torch.ones(1, size, size), diagonal=1).type(torch.uint8) == 0


def generate_square_subsequent_mask(sz):
    return torch.full((sz, sz), float("-inf")).triu(1)


def make_trg_mask(trg, pad):
    square = torch.ones(trg.size(1), trg.size(1), device=trg.device)
    return (trg != pad)[:, None, None, :] & square.tril().bool()
