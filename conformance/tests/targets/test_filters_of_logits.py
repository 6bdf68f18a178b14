"""Filters of logits by their names, by the share that they leave out, and as classes."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken, edited

FUNCTIONS = """
import math

import torch


def top_k(logits, thres=0.9):
    k = math.ceil((1 - thres) * logits.shape[-1])
    values, places = torch.topk(logits, k)
    kept = torch.full_like(logits, float("-inf"))
    return kept.scatter_(1, places, values)


def top_p(logits, thres=0.9):
    ordered, places = torch.sort(logits, descending=True)
    before = ordered.softmax(dim=-1).cumsum(dim=-1)
    removed = before > 1 - thres
    removed[:, 1:] = removed[:, :-1].clone()
    removed[:, 0] = False
    ordered[removed] = float("-inf")
    return ordered.scatter(1, places, ordered)
"""
CLASSES = """
import torch


class TopKSampler:
    def __init__(self, k: int, sampler):
        self.k, self.sampler = k, sampler

    def __call__(self, logits):
        values, places = torch.topk(logits, self.k, dim=-1)
        kept = torch.full_like(logits, float("-inf"))
        return self.sampler(kept.scatter_(-1, places, values))


class NucleusSampler:
    def __init__(self, p: float = 0.9, temperature: float = 1.0):
        self.p, self.temperature = p, temperature

    def sample(self, logits):
        shares, places = torch.softmax(logits / self.temperature, dim=-1).sort(descending=True)
        shares = shares * (shares.cumsum(dim=-1) - shares < self.p)
        drawn = torch.multinomial(shares / shares.sum(dim=-1, keepdim=True), 1)
        return places.gather(-1, drawn).squeeze(-1)
"""
SLUGS = {
    "top_k": ("decoding.sampling-top-k", "decoding.sampling-formula"),
    "top_p": ("decoding.sampling-top-p", "decoding.sampling-formula"),
    "TopKSampler": ("decoding.sampling-top-k", "decoding.sampling-formula"),
    "NucleusSampler": ("decoding.sampling-top-p", "decoding.sampling-temperature"),
}


def _code(name: str) -> str:
    return CLASSES if name[0].isupper() else FUNCTIONS


@pytest.mark.parametrize("name", SLUGS)
def test_filters_and_samplers_are_judged(tmp_path: Path, name: str) -> None:
    assert not broken(adapted(tmp_path, name, _code(name)), *SLUGS[name])


@pytest.mark.parametrize("rounded", ["int(", "max(1, int"])
def test_numbers_of_tokens_may_be_rounded_down(tmp_path: Path, rounded: str) -> None:
    other = "int((1 - thres) * logits.shape[-1])"
    other = f"max(1, {other})" if "max" in rounded else other
    code = edited(FUNCTIONS, ("math.ceil((1 - thres) * logits.shape[-1])", other))
    assert not broken(adapted(tmp_path, "top_k", code), *SLUGS["top_k"])


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("top_k", "torch.topk(logits, k)", "torch.topk(logits, k, largest=False)"),
        ("top_p", "removed[:, 1:] = removed[:, :-1].clone()\n    ", ""),
        ("TopKSampler", "self.k, dim=-1", "self.k, dim=-1, largest=False"),
        ("NucleusSampler", "logits / self.temperature", "logits * self.temperature"),
    ],
)
def test_mistakes_in_filters_are_detected(
    tmp_path: Path, name: str, right: str, wrong: str
) -> None:
    mistaken = edited(_code(name), (right, wrong))
    assert broken(adapted(tmp_path, name, mistaken), *SLUGS[name])


def test_share_that_is_to_be_kept_is_judged_by_an_argument(tmp_path: Path) -> None:
    said = adapted(tmp_path, "top_p", FUNCTIONS, arguments={"top_p": "thres"})
    assert broken(said, *SLUGS["top_p"])


IN_SINGLE = """
import torch


def sample_topk(logits, keep_topk):
    bound = torch.topk(logits, keep_topk, dim=1)[0][:, -1:].float()
    return logits.masked_fill(logits < bound, -10000)


def sample_topp(logits, keep_topp):
    ordered, places = torch.sort(logits, descending=True, dim=1)
    kept = ordered.softmax(-1).cumsum(-1) < keep_topp
    kept = kept.scatter(1, kept.sum(1, keepdim=True).clamp(max=kept.shape[1] - 1), True)
    return logits.masked_fill(~kept.scatter(1, places, kept), -10000)


def sample_with_temperature(logits, sampling_temp, keep_topk, keep_topp):
    if sampling_temp == 0.0:
        return logits.argmax(-1, keepdim=True)
    logits = logits / sampling_temp
    if keep_topp > 0:
        logits = sample_topp(logits, keep_topp)
    if keep_topk > 0:
        logits = sample_topk(logits, keep_topk)
    return torch.distributions.Categorical(logits=logits).sample().view(-1, 1)
"""
WHOLE = ("formula", "top-k", "top-p", "unchanged", "filtered-zero")


@pytest.mark.parametrize("wrong", ["", "keep_topk + 1, dim=1)", "keep_topk, dim=0)"])
def test_filters_that_round_a_bound_to_float32_are_judged_in_that(
    tmp_path: Path, wrong: str
) -> None:
    code = IN_SINGLE.replace("keep_topk, dim=1)", wrong) if wrong else IN_SINGLE
    backend = adapted(tmp_path, "sample_with_temperature", code)
    assert any("computes in float32" in one for one in backend.assumed) is not bool(wrong)
    slugs = [f"decoding.sampling-{one}" for one in WHOLE]
    assert bool(broken(backend, *slugs)) is bool(wrong)
