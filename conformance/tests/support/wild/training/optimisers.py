"""Correct optimisers and clippings in the styles of published code."""

import torch


class MyAdam(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.98), eps=1e-9, weight_decay=0):
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        )

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                g = p.grad
                st = self.state[p]
                if not st:
                    st["t"], st["m"], st["v"] = 0, torch.zeros_like(p), torch.zeros_like(p)
                st["t"] += 1
                if group["weight_decay"]:
                    p.mul_(1 - group["lr"] * group["weight_decay"])
                st["m"].lerp_(g, 1 - b1)
                st["v"].mul_(b2).addcmul_(g, g, value=1 - b2)
                mh = st["m"] / (1 - b1 ** st["t"])
                vh = st["v"] / (1 - b2 ** st["t"])
                p.sub_(group["lr"] * mh / (vh.sqrt() + group["eps"]))


class NumpyAdam:
    def __init__(self, params, lr=0.001, beta1=0.9, beta2=0.98, eps=1e-9):
        self.params = list(params)
        self.lr, self.beta1, self.beta2, self.eps = lr, beta1, beta2, eps
        self.m = [torch.zeros_like(p) for p in self.params]
        self.v = [torch.zeros_like(p) for p in self.params]
        self.t = 0

    def zero_grad(self):
        for p in self.params:
            p.grad = None

    def step(self):
        self.t += 1
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            g = p.grad
            self.m[i] = self.beta1 * self.m[i] + (1 - self.beta1) * g
            self.v[i] = self.beta2 * self.v[i] + (1 - self.beta2) * g**2
            mhat = self.m[i] / (1 - self.beta1**self.t)
            vhat = self.v[i] / (1 - self.beta2**self.t)
            with torch.no_grad():
                p -= self.lr * mhat / (torch.sqrt(vhat) + self.eps)


class MyAdamW(torch.optim.AdamW):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1):
        super().__init__(params, lr=lr, betas=betas, weight_decay=weight_decay)


def clip_grad_norm(parameters, max_norm, norm_type=2.0, eps=1e-6):
    parameters = [p for p in parameters if p.grad is not None]
    total = sum(float(p.grad.detach().norm(norm_type)) ** norm_type for p in parameters) ** (
        1 / norm_type
    )
    scale = max_norm / (total + eps)
    if scale < 1:
        for p in parameters:
            p.grad.data.mul_(scale)
    return total


def clip_gradients(model, clip):
    norms = torch.stack(
        [p.grad.detach().square().sum() for p in model.parameters() if p.grad is not None]
    )
    norm = norms.sum().sqrt()
    if norm > clip:
        for p in model.parameters():
            if p.grad is not None:
                p.grad.mul_(clip / norm)
    return norm
