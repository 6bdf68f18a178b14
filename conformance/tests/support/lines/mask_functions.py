"""Functions that make masks; True may be attended."""

import torch


def padding_mask(tokens, pad):
    """Return a mask that is True where a key may be attended."""
    real = tokens != pad
    return real[:, None, None, :]


def causal_mask(length):
    """Return a square mask that is True where a key may be attended."""
    square = torch.ones(length, length, dtype=torch.bool)
    return torch.tril(square)[None, None]


def subsequent_mask(size):
    """Compare row and column numbers; the mask is True where a key may be attended."""
    i = torch.arange(size)[:, None]
    j = torch.arange(size)[None, :]
    return (j <= i)[None, None]


def target_mask(tokens, pad):
    """Return both masks in one, True where a key may be attended."""
    length = tokens.size(1)
    not_pad = (tokens != pad).unsqueeze(1).unsqueeze(2)
    before = torch.ones(1, 1, length, length, device=tokens.device).tril().bool()
    return not_pad & before
