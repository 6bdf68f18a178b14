"""Decoder-only models in different published styles, read without an option by their numbers."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from folders import SUPPORT
from proof import share
from torch import Tensor, nn

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status, Verdict
from attentest.targets import resolve
from attentest.targets.adapt import Unclear
from attentest.targets.adapt.parameters.telling import lines
from attentest.targets.adapt.reading import Reading
from attentest.targets.language_models.construction.building import building
from attentest.targets.language_models.numbers.places import View
from attentest.targets.language_models.numbers.tracing import traced
from attentest.targets.language_models.tables import table_of
from attentest.targets.members import members
from attentest.targets.single import widened
from attentest.targets.whole import AdaptedWhole
from attentest_spec import Backend, Place

WILD = SUPPORT / "wild_language_models"

SOUND = [
    ("nano.py:GPT", "the choices of gpt2 with activation=gelu", "tokens again as targets"),
    ("mini.py:GPT", "the choices of gpt2 with tying=none", "model_type=None"),
    ("lecture.py:GPTLanguageModel", "projection_bias=output-alone", "sa.heads.*.key.weight"),
    ("llama_c.py:Transformer", "the choices of llama with", "hidden_dim=sizes.d_ff"),
    ("llama.py:Transformer", "rotary_pairs=adjacent", "its inner layer is 2.667 times as wide"),
    ("lit.py:GPT", "the choices of neox with", 'qkv.weight", span="key"', "input_pos is left out"),
    ("wrapped.py:TransformerWrapper", "feed_forward_gate=gated", "attn_layers.layers.0."),
    ("rearranged.py:LanguageModel", "positional_encoding=interleaved", "width=sizes.d_model"),
    ("encoder_layers.py:TransformerModel", "block_norms=post", "tokens are (T, B)"),
    ("outputs.py:TinyForCausalLM", "the choices of llama", "mask of padding=attention_mask"),
    ("parallel.py:GPTNeoXForCausalLM", "the choices of neox", "(h n e) d -> (n h e) d"),
    ("one_plus.py:GemmaForCausalLM", "the choices of gemma2", "freqs_cis is a complex buffer"),
    ("head_norms.py:Qwen3Model", "query_key_norm=per-head", "n_kv_groups=sizes.kv_heads"),
    ("slopes.py:BloomForCausalLM", "relative_bias=alibi", "embedding_norm=present"),
    ("mosaic.py:MPTForCausalLM", "relative_bias=alibi", "expansion_ratio=4"),
    ("stacked.py:GPT2", "the choices of gpt2, as measured", "transpose=True"),
    ("unweighted.py:GPT", "rotary_direction=backward", 'layout="n e d -> (n e) d"'),
    ("every_two.py:GPTJForCausalLM", "rotary_width=0.5", "block_layout=parallel-one-norm"),
    ("axes_of_heads.py:FunctionalLM", "tying=all-three", 'layout="d g e -> (g e) d"'),
    ("inputs_first.py:GPT2LMHeadModel", "the choices of gpt2, as measured", "transpose=True"),
]
"""Sound models, and what is said of how each was read."""

CLAUSES = (
    "formula",
    "causality",
    "default-positions",
    "prefix-consistency",
    "batch-independence",
    "every-layer-counts",
    "left-padding",
    "positions-given",
    "shapes",
    "float32",
    "tied-matrix",
    "parameter-count",
    "parameter-map-complete",
)

MISTAKES = [
    ("nano.py:GPT", "* (1.0 / math.sqrt(k.size(-1)))", ""),
    ("nano.py:GPT", "return x + self.mlp", "return self.mlp"),
    ("nano.py:GPT", "self.ln_2(x)", "self.ln_1(x)"),
    ("nano.py:GPT", ":t] == 0", ":t] == 2"),
    ("mini.py:GPT", ".triu(1)", ".triu(2)"),
    ("mini.py:GPT", ".transpose(1, 2).reshape(b, t, c)", ".reshape(b, t, c)"),
    ("mini.py:GPT", "self.pos_emb[:, :t]", "self.pos_emb[:, 1 : t + 1]"),
    ("lecture.py:GPTLanguageModel", "k.shape[-1] ** -0.5", "x.shape[-1] ** -0.5"),
    ("llama_c.py:Transformer", "xq, xk, xv = (one", "xv = xv.flip(2)\n        xq, xk, xv = (one"),
    ("llama.py:Transformer", "attention_norm(x), f", "attention_norm(self.attention_norm(x)), f"),
    ("llama.py:Transformer", "(xq_ * freqs_cis)", "(xq_)"),
    ("llama.py:Transformer", "F.silu(self.w1(x)) * self.w3(x)", "F.silu(self.w1(x) * self.w3(x))"),
    ("lit.py:GPT", "(-x[..., half:], x[..., :half])", "(x[..., half:], x[..., :half])"),
    ("rearranged.py:LanguageModel", "torch.arange(longest)[", "torch.arange(1, longest + 1)["),
    ("encoder_layers.py:TransformerModel", "(src, src_mask)", "(src)"),
    ("encoder_layers.py:TransformerModel", "1::2] = torch.cos", "1::2] = torch.sin"),
    ("outputs.py:TinyForCausalLM", "(key * cos) + (", "(key * cos) - ("),
    ("outputs.py:TinyForCausalLM", "keep & attention_mask[:, None, None, :].bool()", "keep"),
    ("outputs.py:TinyForCausalLM", "position_ids[:, :, None]", "position_ids[:1, :, None]"),
    ("outputs.py:TinyForCausalLM", ".pow(2).mean(-1", ".var(-1"),
    ("parallel.py:GPTNeoXForCausalLM", "return x + attended", "return attended"),
    ("one_plus.py:GemmaForCausalLM", "hidden_size**0.5", "hidden_size"),
    ("one_plus.py:GemmaForCausalLM", "torch.tanh(logits / cap) * cap", "torch.tanh(logits / cap)"),
    ("head_norms.py:Qwen3Model", "self.k_norm(keys)", "self.q_norm(keys)"),
    ("head_norms.py:Qwen3Model", "values = values.repeat_interleave(self.group_size, dim=1)",
     "values = values.repeat(1, self.group_size, 1, 1)"),
    ("slopes.py:BloomForCausalLM", "range(1, 1 + 2 * (n_heads - closest), 2)",
     "range(1, 1 + n_heads - closest)"),
    ("mosaic.py:MPTForCausalLM", "alibi_bias_max / _n_heads", "alibi_bias_max / (_n_heads + 1)"),
    ("stacked.py:GPT2", "for i in range(self.n_layer):\n            p",
     "for i in [0] * self.n_layer:\n            p"),
    ("unweighted.py:GPT", "x1 * (-sin)", "x1 * sin"),
    ("every_two.py:GPTJForCausalLM", "/ self.scale_attn", "/ math.sqrt(self.embed_dim)"),
    ("axes_of_heads.py:FunctionalLM", "q.view(b, t, g, h // g, e)",
     "q.view(b, t, h // g, g, e).transpose(2, 3)"),
    ("inputs_first.py:GPT2LMHeadModel", "- 1e10 * (1 - b)", "- 1e1 * (1 - b)"),
]  # fmt: skip
"""A model, and an edit that injects a mistake."""

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")


def judged(backend: Backend) -> Iterator[Verdict]:
    """Yield the verdicts on the clauses about numbers, each as it is asked for."""
    bench = Bench.for_status(backend, effort=0.1)
    return (judge(bench, f"language_model.{name}") for name in CLAUSES)


@share(24, rest=1)
@pytest.mark.parametrize(
    ("target", "said"),
    [(one, rest) for one, *rest in SOUND],
)
def test_sound_models_are_read_without_an_option_and_conform(target: str, said: list[str]) -> None:
    backend = attentest.adapted(str(WILD / target))
    assert isinstance(backend, AdaptedWhole)
    read = "\n".join(backend.understood)
    for sentence in said:
        assert sentence in read, read
    verdicts = list(judged(backend))
    assert not [one.message for one in verdicts if one.status.fails_run]
    assert sum(one.status.judged for one in verdicts) >= 11


@pytest.mark.proof
@share(40)
@pytest.mark.parametrize(("target", "old", "new"), MISTAKES)
def test_mistakes_in_models_are_asked_about_or_detected(
    target: str, old: str, new: str, tmp_path: Path
) -> None:
    file, _, name = target.partition(":")
    source = (WILD / file).read_text()
    assert old in source
    (tmp_path / file).write_text(source.replace(old, new))
    assert is_asked_or_fails(f"{tmp_path / file}:{name}")


def is_asked_or_fails(target: str) -> bool:
    """Say whether a model is asked about, or violates a clause about numbers."""
    try:
        backend = attentest.adapted(target)
    except Unclear as question:
        return "the reference" in str(question) or "decoder-only" in str(question)
    return any(one.status.fails_run for one in judged(backend))


def test_a_question_names_the_step_and_what_a_design_may_compute(tmp_path: Path) -> None:
    source, scale = (WILD / "llama_c.py").read_text(), " / math.sqrt(self.head_dim)"
    assert scale in source
    (tmp_path / "unscaled.py").write_text(source.replace(scale, ""))
    match = r"weighted values of layers\.0\.self_attention \(it computes .*not divided by sqrt"
    with pytest.raises(Unclear, match=match):
        attentest.adapted(f"{tmp_path / 'unscaled.py'}:Transformer")


@pytest.mark.proof
@pytest.mark.parametrize(("own", "read"), [("self.sinks", True), ("2 * self.sinks", False)])
def test_trained_sinks_are_read_by_their_numbers(own: str, *, read: bool, tmp_path: Path) -> None:
    source = (WILD / "llama_c.py").read_text()
    soft = "F.softmax(scores.float(), dim=-1)"
    held = "self.dropout = args.dropout"
    assert soft in source
    assert held in source
    sinks = f"{own}.view(1, -1, 1, 1).expand(*scores.shape[:3], 1)"
    joined = f"torch.cat([scores, {sinks}], -1).float().softmax(-1)[..., :-1]"
    made = f"{held}\n        self.sinks = nn.Parameter(torch.zeros(args.n_heads))"
    changed = source.replace(soft, joined).replace(held, made, 1)
    (tmp_path / "sinks.py").write_text(changed)
    target = f"{tmp_path / 'sinks.py'}:Transformer"
    if not read:
        with pytest.raises(Unclear, match=r"weighted values of layers\.0\.self_attention"):
            attentest.adapted(target)
        return
    backend = attentest.adapted(target)
    assert isinstance(backend, Backend)
    assert backend.choices["attention_sink"] == "per-head"
    assert not [one.message for one in judged(backend) if one.status.fails_run]


LAST = "return self.lm_head(x[:, [-1], :]), None"


@pytest.mark.proof
@share(3)
@pytest.mark.parametrize(
    "sound", [LAST, LAST.replace("[-1]", "-1"), LAST.replace(")", ").softmax(-1)", 1)]
)
def test_the_last_step_alone_is_given_without_labels(sound: str, tmp_path: Path) -> None:
    source = (WILD / "nano.py").read_text()
    (tmp_path / "nano.py").write_text(source.replace(LAST, sound))
    said = "\n".join(attentest.adapted(f"{tmp_path / 'nano.py'}:GPT").understood)
    assert "tokens again as targets, to have all steps" in said


@pytest.mark.proof
@share(3)
@pytest.mark.parametrize(
    "wrong",
    [
        LAST.replace("[-1]", "[0]"),
        LAST.replace("x[", "self.transformer.ln_f(x)["),
        LAST.replace("lm_head(x", "lm_head(torch.nan * x"),
    ],
)
def test_another_step_without_labels_is_a_question(wrong: str, tmp_path: Path) -> None:
    source = (WILD / "nano.py").read_text()
    assert LAST in source
    (tmp_path / "nano.py").write_text(source.replace(LAST, wrong))
    with pytest.raises(Unclear, match=r"what it computes where targets is None\.$"):
        resolve.load(f"{tmp_path / 'nano.py'}:GPT")  # as commands do, which add where options go


@pytest.mark.proof
def test_model_for_a_limited_number_of_texts_conforms() -> None:
    """It keeps the keys of 8 texts at most by default, and is judged with 33."""
    backend = attentest.adapted(str(WILD / "start_pos.py:Transformer"))
    verdict = judge(Bench.for_status(backend, effort=1), "language_model.formula")
    assert verdict.status is Status.PASS, verdict.message


@pytest.mark.parametrize("name", ["context", "ctx", "max_context"])
def test_greatest_length_is_read_by_its_name(name: str, tmp_path: Path) -> None:
    source = (WILD / "lecture.py").read_text()
    (tmp_path / "lecture.py").write_text(source.replace("block_size", name))
    made = resolve.module_of(str(tmp_path / "lecture.py")).GPTLanguageModel
    expression = building(made, "GPTLanguageModel", Reading()).expression
    assert f"{name}=sizes.max_length" in expression


def test_settings_may_be_in_another_file_of_the_package(tmp_path):
    before, held = (WILD / "nano.py").read_text().split("@dataclass\n")
    held, rest = held.split("\n\n\n", 1)
    package = tmp_path / "settings_apart"
    package.mkdir()
    (package / "__init__.py").touch()
    head = "from dataclasses import dataclass\n\n\n@dataclass\n"
    (package / "settings.py").write_text(f'{head}{held}\n    dtype: str = "float32"\n')
    (package / "model.py").write_text(f"{before}from .settings import GPTConfig\n\n\n{rest}")
    made = resolve.module_of(str(package / "model.py")).GPT
    expression = building(made, "GPT", Reading()).expression
    assert "config=GPTConfig(block_size=sizes.max_length" in expression
    assert "dtype" not in expression


@pytest.mark.exhaustive
def test_a_model_that_refuses_double_precision_is_read_in_single(tmp_path):
    source = (WILD / "nano.py").read_text().replace("class GPT(", "class TextModel(")
    plain = "functional.softmax(att, dim=-1)"
    assert plain in source
    mixed = source.replace(plain, "functional.softmax(att.float(), dim=-1)")
    (tmp_path / "mixed.py").write_text(mixed)
    backend = resolve.load(str(tmp_path / "mixed.py:TextModel"))
    assert "float64" not in backend.limits.precisions
    wrong = mixed.replace("x + self.mlp(self.ln_2(x))", "self.mlp(self.ln_2(x))")
    assert wrong != mixed
    (tmp_path / "wrong.py").write_text(wrong)
    backend = resolve.load(str(tmp_path / "wrong.py:TextModel"))
    assert isinstance(backend, AdaptedWhole)
    assert any("without its residual path" in one for one in backend.assumed)
    assert "float64" not in backend.limits.precisions


def test_a_file_lists_a_model_and_its_parts(tmp_path: Path):
    """A function that builds the model is no further one."""
    file = tmp_path / "head_norms.py"
    built = "\n\ndef build_model():\n    return Qwen3Model({})\n"
    file.write_text((WILD / file.name).read_text() + built)
    found = {one.name: one for one in members(str(file)) or ()}
    assert found["Qwen3Model"].component == "language_model"
    assert found["TransformerBlock"].inside == "Qwen3Model"
    assert found["RMSNorm"].component == "rms_norm"
    assert found["build_model"].component == ""


@pytest.mark.proof
def test_a_model_whose_tokens_see_no_key_is_one_of_tokens(tmp_path: Path):
    """Its outputs are no numbers; the question is about its scores, and not about its call."""
    source = (WILD / "head_norms.py").read_text()
    assert source.count("diagonal=1") == 1
    file = tmp_path / "head_norms.py"
    file.write_text(source.replace("diagonal=1", "diagonal=0"))
    with pytest.raises(Unclear, match=r"read as a decoder-only model.* scores and weighted values"):
        resolve.load(f"{file}:Qwen3Model")


@pytest.mark.proof
def test_the_written_adapter_is_the_backend():
    backend = attentest.adapted(str(WILD / "one_plus.py:GemmaForCausalLM"))
    assert isinstance(backend, AdaptedWhole)
    space: dict[str, object] = {}
    exec(backend.written(), space)
    written = space["backend"]
    assert isinstance(written, Backend)
    assert (written.choices, written.limits) == (backend.choices, backend.limits)


def test_a_layer_is_a_question_that_names_the_whole_model():
    with pytest.raises(Unclear, match="name the class of the whole model"):
        attentest.adapted(f"{WILD / 'nano.py'}:Block", "causal_layer")


def test_an_object_of_a_model_is_one_question():
    class TinyGPT(nn.Module):
        def forward(self, tokens: Tensor) -> Tensor:
            return tokens

    with pytest.raises(Unclear, match="Give the class TinyGPT"):
        attentest.adapted(TinyGPT())


class _Rounding(nn.Module):
    """A map that computes in single precision."""

    def forward(self, x: Tensor) -> Tensor:
        table = torch.arange(1, 5, dtype=torch.float32) / 3
        return (x.float() * table).to(x.dtype).reshape(2, 2)


def test_a_trace_holds_numbers_in_any_order_without_the_rounding_of_the_code():
    x = torch.tensor([1.0, 7.0, 2.0, 5.0], dtype=torch.float64) / 7
    trace, output = traced(lambda: _Rounding()(x))
    expected = x.numpy() * np.arange(1, 5) / 3
    assert trace.holds(expected[::-1])
    assert not trace.holds(expected * (1 + 1e-7))
    assert not trace.holds(np.full(4, np.nan))
    assert np.abs(output.numpy().reshape(-1) - expected).max() < 1e-15
    assert not np.array_equal(_Rounding()(x).numpy().reshape(-1), expected)


def test_widening_ends_with_its_block():
    with widened():
        assert torch.zeros(1).float().dtype == torch.float64
    assert torch.zeros(1).float().dtype == torch.float32


def views(**names: str) -> dict[str, View]:
    return {
        f"layers.{layer}.norm.gain": View(Place(name), np.ones(2))
        for layer, name in zip("01", names.values(), strict=True)
    }


def test_layers_in_a_row_are_a_pattern_and_others_are_written_out():
    assert table_of(views(a="h.0.n2.g", b="h.1.n2.g")) == {"layers.*.norm.gain": Place("h.*.n2.g")}
    found = table_of(views(a="net.1.g", b="net.3.g"))
    assert isinstance(found, dict)
    assert found["layers.5.norm.gain"] == Place("net.11.g")


def test_norms_of_the_next_layer_are_said_to_begin_the_path():
    named = views(a="h.1.n1.g", b="norm.g")
    other = {one.replace(".norm.", ".feed_forward_norm."): view for one, view in named.items()}
    assert "the path around the sublayer begins behind the norm" in str(table_of(other))
    assert "behind the norm" not in str(table_of(named))


@pytest.mark.parametrize("second", ["h.1.other.g", "h.1.n3.g"])
def test_layers_without_a_rule_are_a_sentence(second: str) -> None:
    assert f"is h.0.n2.g in one layer and {second}" in str(table_of(views(a="h.0.n2.g", b=second)))


def test_written_places_keep_rows_of_packed_parameters() -> None:
    table = {"key.weight": Place("qkv.weight", span="key"), "gain": Place("w", plus=1.0)}
    space: dict[str, object] = {}
    exec("\n".join(lines(table)), space)
    assert space["PARAMETERS"] == table


def test_a_list_that_holds_one_layer_several_times_is_named(tmp_path: Path) -> None:
    source = (WILD / "nano.py").read_text()
    own = "[Block(config) for _ in range(config.n_layer)]"
    assert own in source
    (tmp_path / "nano.py").write_text(source.replace(own, "[Block(config)] * config.n_layer"))
    with pytest.raises(Unclear, match=r"one module that a list holds several times"):
        attentest.adapted(f"{tmp_path / 'nano.py'}:GPT")
