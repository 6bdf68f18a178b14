import torch


class RoPE:
    def __init__(self, head_dim, base=1_000_000.0):
        self.head_dim = head_dim
        self.freqs = [base ** (-2 * i / head_dim) for i in range(head_dim // 2)]

    def __call__(self, q, k, positions=None):
        if positions is None:
            positions = torch.arange(q.shape[-2], device=q.device)[None]
        angle = positions[:, None, :, None] * torch.tensor(self.freqs, device=q.device).double()
        return self._turn(q, angle), self._turn(k, angle)

    def _turn(self, x, angle):
        half = self.head_dim // 2
        c, s = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        return torch.cat(
            (x[..., :half] * c - x[..., half:] * s, x[..., half:] * c + x[..., :half] * s), -1
        )
