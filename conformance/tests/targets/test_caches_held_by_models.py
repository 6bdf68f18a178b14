"""Decoder-only models that hold their cache themselves, and take the number of tokens before."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, asked_or_broken, broken
from torch import Tensor, nn

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt.reading import Unclear
from attentest.targets.language_models.caching import held_by_switch
from attentest.targets.whole import AdaptedWhole

SOURCE = (SUPPORT / "wild_language_models" / "start_pos.py").read_text()
TURNED = "freqs = freqs[start_pos : start_pos + t]"
KEPT = "self.cache_v[:b, start_pos : start_pos + t] = v.detach()"


def test_a_cache_in_the_model_is_read_by_its_steps(tmp_path: Path) -> None:
    backend = _adapted(tmp_path, SOURCE)
    said = "\n".join(backend.understood)
    assert "continued: cache held by the model itself, tokens before=start_pos" in said
    assert backend.choices["cache_sessions"] == "one"


@pytest.mark.proof
def test_a_cache_in_the_model_is_judged(tmp_path: Path) -> None:
    bench = Bench.for_status(_adapted(tmp_path, SOURCE))
    found = [judge(bench, f"language_model.cached-{one}") for one in ("formula", "chunks", "reset")]
    assert all(one.status.judged and not one.status.fails_run for one in found)


@pytest.mark.proof
def test_positions_that_begin_again_are_a_known_mistake(tmp_path: Path) -> None:
    backend = _adapted(tmp_path, _changed(TURNED, "freqs = freqs[:t]"))
    assert judge(Bench.for_status(backend), "language_model.cached-formula").status.fails_run


@pytest.mark.proof
def test_a_cache_that_is_written_elsewhere_is_a_question(tmp_path: Path) -> None:
    wrong = _changed(KEPT, "self.cache_v[:b, :t] = v.detach()")
    with pytest.raises(Unclear, match=r"holds its cache itself .* not that of the whole text"):
        _adapted(tmp_path, wrong)


def test_the_option_of_the_question_judges_without_the_cache(tmp_path: Path) -> None:
    wrong = _changed(KEPT, "self.cache_v[:b, :t] = v.detach()")
    assert _adapted(tmp_path, wrong, given={"start_pos": 0}).name


def test_a_cache_that_is_held_and_not_read_is_a_question(tmp_path: Path) -> None:
    wrong = _changed("if start_pos == 0:", "if True:")
    with pytest.raises(Unclear, match=r"holds layers\.0\.attention\.cache_k from one call"):
        _adapted(tmp_path, wrong)


@pytest.mark.proof
def test_a_number_of_tokens_before_without_a_cache_is_said(tmp_path: Path) -> None:
    without = _changed("if start_pos == 0:", "if True:").replace("= k.detach()", "= 0")
    backend = _adapted(tmp_path, without.replace("= v.detach()", "= 0"))
    assert any("start_pos is given as 0" in one for one in backend.assumed)


def _changed(old: str, new: str) -> str:
    assert old in SOURCE
    return SOURCE.replace(old, new)


def _adapted(folder: Path, source: str, **options: object) -> AdaptedWhole:
    (folder / "held.py").write_text(source)
    backend = attentest.adapted(f"{folder / 'held.py'}:Transformer", **options)
    assert isinstance(backend, AdaptedWhole)
    return backend


@pytest.mark.proof
def test_tokens_beyond_a_cache_that_drops_them_are_an_assumption(tmp_path: Path) -> None:
    backend = _adapted(tmp_path, SOURCE)
    assert any("given no more tokens than it is made for" in one for one in backend.assumed)
    verdict = judge(Bench.for_status(backend), "language_model.cached-beyond-length")
    assert not verdict.status.fails_run


SWITCHED = """
import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.kept = heads, None
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, caching):
        heads = (one.unflatten(-1, (self.heads, -1)) for one in self.qkv(x).chunk(3, -1))
        q, k, v = (one.transpose(1, 2) for one in heads)
        if caching:
            if self.kept is not None:
                k, v = (torch.cat(pair, 2) for pair in zip(self.kept, (k, v)))
            self.kept = k, v
        seen = torch.ones(k.shape[2], k.shape[2]).bool().tril()[k.shape[2] - q.shape[2] :]
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return self.out(mixed.transpose(1, 2).flatten(2))


class TinyGPT(nn.Module):
    def __init__(self, vocab_size, dim, heads, layers, block_size):
        super().__init__()
        self.words, self.places = nn.Embedding(vocab_size, dim), nn.Embedding(block_size, dim)
        self.attention = nn.ModuleList(Attention(dim, heads) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(2 * layers + 1))
        self.up = nn.ModuleList(nn.Linear(dim, 4 * dim) for _ in range(layers))
        self.down = nn.ModuleList(nn.Linear(4 * dim, dim) for _ in range(layers))
        self.head = nn.Linear(dim, vocab_size, bias=False)

    def clear_cache(self):
        for one in self.attention:
            one.kept = None

    def forward(self, ids, labels=None, caching=False):
        kept = self.attention[0].kept if caching else None
        first = 0 if kept is None else kept[0].shape[2]
        x = self.words(ids) + self.places(torch.arange(first, first + ids.shape[1]))
        for number, attention in enumerate(self.attention):
            x = x + attention(self.norms[2 * number](x), caching)
            h = self.norms[2 * number + 1](x)
            x = x + self.down[number](F.gelu(self.up[number](h)))
        logits = self.head(self.norms[-1](x))
        if labels is None:
            return logits[:, [-1]], None
        return logits, F.cross_entropy(logits.flatten(0, 1), labels.view(-1))
"""
FORMULA = "language_model.cached-formula"


@pytest.mark.proof
def test_cache_behind_a_switch_is_judged(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "TinyGPT", SWITCHED)
    said = "cache held by the model itself, with caching=True, and emptied by model.clear_cache()"
    assert said in "\n".join(backend.understood)
    assert not broken(backend, FORMULA, "language_model.cached-chunks")


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (".tril()[k.shape[2] - q.shape[2] :]", ".tril()[: q.shape[2]]"),
        ("torch.arange(first, first + ids", "torch.arange(ids"),
        ("self.kept = k, v", "self.kept = k, k"),
        ("self.kept, (k, v))", "(k, v), self.kept)"),
    ],
)
def test_mistake_in_a_cache_behind_a_switch_is_found(
    right: str, wrong: str, tmp_path: Path
) -> None:
    clauses = FORMULA, "language_model.cached-chunks"
    assert asked_or_broken(tmp_path, "TinyGPT", SWITCHED, right, wrong, *clauses)


@pytest.mark.proof
def test_switch_is_off_where_it_is_given_as_that(tmp_path: Path) -> None:
    wrong = SWITCHED.replace("self.kept = k, v", "self.kept = k, k")
    with pytest.raises(Unclear, match=r"continued with caching=True.*--give caching=False"):
        adapted(tmp_path, "TinyGPT", wrong)
    backend = adapted(tmp_path, "TinyGPT", wrong, given={"caching": False})
    assert tuple(backend.components) == ("language_model",)


def test_switch_without_a_method_that_empties_or_with_positions_is_left_alone() -> None:
    class Held(nn.Module):
        def forward(self, ids: Tensor, use_cache: bool = False) -> Tensor: ...

        def reset_parameters(self) -> None: ...

    class Emptied(Held):
        def reset_kv_cache(self) -> None: ...

    class Placed(Emptied):
        def forward(self, ids: Tensor, use_cache: bool = False, cur: int = 0) -> Tensor: ...

    class PlacedByName(Emptied):
        def forward(self, ids: Tensor, use_cache: bool = False, pos: object = None) -> Tensor: ...

    assert not [one for made in (Held, Placed, PlacedByName) for one in held_by_switch(made())]
    assert [one.start for one in held_by_switch(Emptied())] == ["model.reset_kv_cache()"]
