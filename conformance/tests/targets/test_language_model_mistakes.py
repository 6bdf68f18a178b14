"""Decoder-only models with one mistake that no design makes: they are judged, not asked about."""

from pathlib import Path

import pytest
from folders import SUPPORT
from proof import share

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest.targets.adapt import Unclear
from attentest.targets.adapt.components import squashed
from attentest.targets.language_models.mistaken import _DECODERS
from attentest.targets.language_models.numbers.mistakes import ALL_SEEN, OF_SCORES
from attentest.targets.whole import AdaptedWhole
from attentest_spec import Sizes

WILD = SUPPORT / "wild_language_models"

UNMASKED = ("nano.py:GPT", ":t] == 0", ":t] == 2", "of which later tokens are not hidden")
MISTAKES = [
    ("llama.py:Transformer", "diagonal=1", "diagonal=2", "the next token is not hidden"),
    (
        "lecture.py:GPTLanguageModel",
        "k.shape[-1] ** -0.5",
        "x.shape[-1] ** -0.5",
        "divided by sqrt(d_model)",
    ),
    ("nano.py:GPT", "return x + self.mlp", "return self.mlp", "without its residual path"),
    ("nano.py:GPT", "self.ln_2(x)", "self.ln_1(x)", "has the norm of attention"),
    UNMASKED,
    ("mini.py:GPT", ".transpose(1, 2).reshape(b, t, c)", ".reshape(b, t, c)", "transposed back"),
    ("outputs.py:TinyForCausalLM", "(key * cos) + (", "(key * cos) - (", "the other direction"),
    ("llama.py:Transformer", "(xk_ * freqs_cis)", "(xk_)", "not turned by their positions"),
    (
        "outputs.py:TinyForCausalLM",
        "rotate_half(key) *",
        "torch.stack((-key[..., 1::2], key[..., ::2]), -1).flatten(-2) *",
        "in other pairs of columns than queries, by the angles of those",
    ),
    ("nano.py:GPT", "x = x + self.attn", "x = self.attn", "attention without its residual path"),
    (
        "llama.py:Transformer",
        "return h + self.feed_forward",
        "return x + self.feed_forward",
        "residual path begins at the input of its block",
    ),
    (
        "nano.py:GPT",
        "x = x + self.attn",
        "x = self.ln_1(x) + self.attn",
        "attention whose residual path begins at its normalised input",
    ),
    (
        "nano.py:GPT",
        "return x + self.mlp",
        "return self.ln_2(x) + self.mlp",
        "a network whose residual path begins at its normalised input",
    ),
    (
        "llama.py:Transformer",
        "(xq_ * freqs_cis)",
        "(xq_)",
        "queries that are not turned by their positions, as keys are",
    ),
    (
        "llama.py:Transformer",
        "xq, xk = apply_rotary_emb(xq, xk, freqs_cis=freqs_cis)",
        "xq, xv = apply_rotary_emb(xq, xv, freqs_cis=freqs_cis)",
        "values that are turned by their positions, and keys that are not",
    ),
    (
        "outputs.py:TinyForCausalLM",
        "torch.cat((freqs, freqs), dim=-1)",
        "freqs.repeat_interleave(2, dim=-1)",
        "queries and keys that are turned by angles for other pairs of columns",
    ),
    (
        "head_norms.py:Qwen3Model",
        "keys = apply_rope(self.k_norm(keys), cos, sin)",
        "keys, values = (apply_rope(one, cos, sin) for one in (self.k_norm(keys), values))",
        "values that are turned by their positions, as queries and keys are",
    ),
    (
        "head_norms.py:Qwen3Model",
        "keys = apply_rope(self.k_norm(keys), cos, sin)",
        "keys = self.k_norm(keys)",
        "keys that are not turned by their positions, as queries are",
    ),
    ("slopes.py:BloomForCausalLM", " + alibi", " - alibi", "distances has the other sign"),
    (
        "outputs.py:TinyForCausalLM",
        "self.act_fn(self.gate_proj(x)) * self.up_proj(x)",
        "self.act_fn(self.up_proj(x)) * self.gate_proj(x)",
        "the activation on the other map",
    ),
]
"""A model, an edit that injects a mistake into every layer, and what is said of it."""

USED_LATER = (
    "the next token is not hidden",
    "of which later tokens are not hidden",
    "not turned by their positions",
    "queries that are not turned by their positions, as keys are",
    "values that are turned by their positions, and keys that are not",
    "values that are turned by their positions, as queries and keys are",
    "keys that are not turned by their positions, as queries are",
    "queries and keys that are turned by angles for other pairs of columns",
)
"""Mistakes in numbers whose line is the one that uses them."""


def edited(target: str, old: str, new: str, folder: Path, extra: str = "") -> str:
    file, _, name = target.partition(":")
    source = (WILD / file).read_text()
    assert old in source
    (folder / file).write_text(source.replace(old, new) + extra)
    return f"{folder / file}:{name}"


@pytest.mark.proof
@share(12, rest=24)
@pytest.mark.parametrize(("target", "old", "new", "said"), MISTAKES)
def test_mistakes_that_no_design_makes_are_violations(
    target: str, old: str, new: str, said: str, tmp_path: Path
) -> None:
    backend = attentest.adapted(edited(target, old, new, tmp_path))
    assert isinstance(backend, AdaptedWhole)
    assert any(said in one for one in backend.assumed), backend.assumed
    assert backend.mistaken is not None
    assert said in backend.mistaken.computed
    if said not in USED_LATER:
        assert new in backend.mistaken.code
    bench = Bench.for_status(backend, effort=0.1)
    assert judge(bench, "language_model.formula").status is Status.VIOLATION


@pytest.mark.exhaustive
def test_a_model_that_fills_in_tokens_may_see_them_all(tmp_path: Path) -> None:
    target, old, new, said = UNMASKED
    with pytest.raises(Unclear, match=said):
        attentest.adapted(edited(target, old, new, tmp_path, "\n\nMASK_TOKEN_ID = 3\n"))


@pytest.mark.parametrize(
    ("name", "continues"),
    [
        *(("GPTJ", True), ("GPTNeoX", True), ("NanoGPT", True), ("GPT2", True)),
        *(("SmolLM2", True), ("DecoderOnlyArch", True)),
        *(("ImageGPTHead", False), ("DecoderOnlyBlock", False)),
    ],
)
def test_names_of_models_that_continue_texts(name: str, continues: bool) -> None:
    assert bool(_DECODERS.search(squashed(name))) is continues


def test_scales_of_published_models_are_no_sure_mistakes() -> None:
    doubtful = [one.words for one in OF_SCORES if not one.sure]
    assert [one.rpartition(" by ")[2] for one in doubtful[:2]] == ["sqrt(d_k)", "d_k"]
    assert ALL_SEEN.words in doubtful[2:]


def test_a_scale_follows_the_sizes() -> None:
    scales = [one.options(Sizes(d_model=64, heads=4)) for one in OF_SCORES[:5]]
    assert [one["score_scale"] for one in scales] == [1, 1 / 8, 1 / 16, 1 / 16, 4]


def test_heads_that_are_all_repeated_in_turn_may_be_a_design() -> None:
    tiled = {one.tiled: one.sure for one in OF_SCORES if one.tiled}
    assert tiled == {("key",): True, ("value",): True, ("key", "value"): False}
