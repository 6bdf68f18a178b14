import torch


def apply_rotary(x: torch.Tensor, base: float = 10000.0) -> torch.Tensor:
    b, h, t, d = x.shape
    inv = base ** (-torch.arange(0, d, 2, device=x.device, dtype=torch.float32) / d)
    theta = torch.arange(t, device=x.device, dtype=torch.float32)[:, None] * inv
    cos, sin = theta.cos().to(x.dtype), theta.sin().to(x.dtype)
    x1, x2 = x[..., 0::2], x[..., 1::2]
    return torch.stack((x1 * cos - x2 * sin, x1 * sin + x2 * cos), dim=-1).reshape(b, h, t, d)
