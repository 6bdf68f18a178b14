import torch


def precompute_freqs(dim: int, max_len: int, theta: float = 10000.0):
    exponent = torch.arange(0, dim, 2, dtype=torch.float64) / dim
    angles = torch.outer(torch.arange(max_len, dtype=torch.float64), theta**-exponent)
    return torch.stack((angles.cos(), angles.sin()), dim=-1)


def apply_rotary_emb(x, freqs):
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    cos, sin = freqs[None, :, None, :, 0].to(x.dtype), freqs[None, :, None, :, 1].to(x.dtype)
    first = pairs[..., 0] * cos - pairs[..., 1] * sin
    second = pairs[..., 1] * cos + pairs[..., 0] * sin
    return torch.stack((first, second), dim=-1).flatten(-2)
