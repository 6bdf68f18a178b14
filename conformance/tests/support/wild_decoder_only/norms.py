"""RMS norms in the styles of published decoder-only models, each written anew."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # as people write it


class RMSNorm(nn.Module):
    """The minimal one: rsqrt of a mean."""

    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        return self._norm(x.float()).type_as(x) * self.weight


class LlamaStyleRMSNorm(nn.Module):
    """Always widened, rounded before the weight."""

    def __init__(self, hidden_size, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        kind = hidden_states.dtype
        wide = hidden_states.to(torch.float32)
        variance = wide.pow(2).mean(-1, keepdim=True)
        wide = wide * torch.rsqrt(variance + self.variance_epsilon)
        return self.weight * wide.to(kind)


class GemmaStyleRMSNorm(nn.Module):
    """Always widened, 1 + weight there."""

    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        rows = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)
        return (rows * (1.0 + self.weight.float())).type_as(x)


class RootMeanSquareNorm(nn.Module):
    """A norm of the library, divided by the root of the width."""

    def __init__(self, d_model, epsilon=1e-8):
        super().__init__()
        self.epsilon = epsilon
        self.scale = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        rms = torch.linalg.vector_norm(x, dim=-1, keepdim=True) * x.shape[-1] ** -0.5
        return self.scale * x / (rms + self.epsilon)


class ScaledUnitRMSNorm(nn.Module):
    """Unit length times the root of the width."""

    def __init__(self, dim):
        super().__init__()
        self.scale = dim**0.5
        self.gamma = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return F.normalize(x, dim=-1) * self.scale * self.gamma


class LibraryRMSNorm(nn.Module):
    """A wrapper of the library's function."""

    def __init__(self, ndim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(ndim))

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, 1e-5)


class BareRMSNorm(nn.Module):
    """No weight at all."""

    def __init__(self, dim=None):
        super().__init__()

    def forward(self, x):
        return F.rms_norm(x, (x.size(-1),), eps=1e-6)


class BiasedRMSNorm(nn.Module):
    """With a bias, as few have it."""

    def __init__(self, size: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(size))
        self.bias = nn.Parameter(torch.zeros(size))

    def forward(self, x):
        mean_square = (x * x).mean(dim=-1, keepdim=True)
        return x / torch.sqrt(mean_square + self.eps) * self.weight + self.bias


class RMSLayerNorm(nn.Module):
    """The name of a layer norm, and none of its mean."""

    def __init__(self, normalized_shape, eps=1e-6):
        super().__init__()
        self.g = nn.Parameter(torch.ones(normalized_shape))
        self.eps = eps

    def forward(self, x):
        return self.g * x * (x.square().mean(-1, keepdim=True) + self.eps).rsqrt()


class PlusOneRMSNorm(nn.Module):
    """1 + weight in the precision of the model."""

    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.scale = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        return x * torch.rsqrt(torch.mean(x**2, dim=-1, keepdim=True) + self.eps) * (1 + self.scale)
