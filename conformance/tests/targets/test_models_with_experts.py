"""Whole decoder-only models with mixtures of experts: all but these is judged."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked, asked_or_broken, broken, edited
from proof import share
from wild_mixtures import dense_first, whole

import attentest
from attentest.results.wording import summary

SOURCES = {
    "MixtralForCausalLM": Path(str(whole.__file__)).read_text(),
    "TinyGPT": Path(str(dense_first.__file__)).read_text(),
}
FORMULA = "language_model.formula"


@pytest.mark.proof
@share(2)
@pytest.mark.parametrize(
    ("name", "part"),
    [("MixtralForCausalLM", "layers.*.mlp"), ("TinyGPT", "layers.*.ffn")],
)
def test_rest_of_a_model_with_experts_is_judged(name: str, part: str, tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(SOURCES[name])
    clauses = [FORMULA, "language_model.gradient", "language_model.parameter-count"]
    report = attentest.check(f"{file}:{name}", clauses=clauses)
    assert {str(report[slug].status) for slug in clauses} == {"pass"}
    backend = next(iter(report.run))
    said = f"not compared: {part}, a mixture of experts"
    assert any(one.startswith(said) for one in backend.description.assumed)
    assert summary(backend, report.run.plan).endswith(said)


MISTAKES = {
    "no norm before the experts": (
        "TinyGPT",
        "self.ffn(self.ffn_norm(x))\n            ",
        "self.ffn(x)\n            ",
    ),
    "the norm of attention before the experts": (
        "MixtralForCausalLM",
        "self.mlp(self.post_mlp(x))",
        "self.mlp(self.post_attn(x))",
    ),
    "no residual path": ("MixtralForCausalLM", "x + self.mlp(", "0 * x + self.mlp("),
    "the residual path of the normed rows": (
        "MixtralForCausalLM",
        "return x + self.mlp(self.post_mlp(x))",
        "x = self.post_mlp(x)\n        return x + self.mlp(x)",
    ),
    "no later token hidden": ("TinyGPT", "is_causal=True", "is_causal=False"),
    "no final norm": ("MixtralForCausalLM", "self.lm_head(self.norm(x))", "self.lm_head(x)"),
}
"""Mistakes around the experts: the model, and what is replaced in its code."""


@pytest.mark.proof
@share(6)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_around_experts_is_detected(mistake: str, tmp_path: Path) -> None:
    name, right, wrong = MISTAKES[mistake]
    clauses = (FORMULA, "language_model.parameter-count")
    assert asked_or_broken(tmp_path, name, SOURCES[name], right, wrong, *clauses)


BESIDES = {
    "a residual path of its own": ("return (own * weights", "return x + (own * weights"),
    "rows that depend on one another": (
        "scores = self.router(x).softmax(-1)",
        "scores = self.router(x).softmax(1)",
    ),
}
"""Things that a mixture may do besides: a network in its place would hide them."""


@pytest.mark.proof
@share(2)
@pytest.mark.parametrize("besides", BESIDES)
def test_mixture_that_does_more_than_map_rows_is_asked_about(besides: str, tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(edited(SOURCES["TinyGPT"], BESIDES[besides]))
    assert "not compared" not in asked(f"{file}:TinyGPT")


def test_strict_asks_about_experts(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(SOURCES["MixtralForCausalLM"])
    assert "SparseMoeBlock" in asked(f"{file}:MixtralForCausalLM", strict=True)


def test_noise_of_a_router_outside_of_training_is_named(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    right = "scores = self.router(x).softmax(-1)"
    wrong = "s = self.router(x)\n        scores = (s + torch.randn_like(s)).softmax(-1)"
    file.write_text(edited(SOURCES["TinyGPT"], (right, wrong)))
    said = asked(f"{file}:TinyGPT")
    assert "first of all modules in layers.1.ffn (MoEFeedForward)" in said


@pytest.mark.proof
def test_networks_of_other_layers_are_judged_under_another_name(tmp_path: Path) -> None:
    source = edited(
        SOURCES["TinyGPT"],
        (
            "self.ffn = Dense(s.dim, s.hidden_dim) if is_dense else MoEFeedForward(s)",
            "if is_dense:\n            self.ffn = Dense(s.dim, s.hidden_dim)\n"
            "        else:\n            self.moe = MoEFeedForward(s)",
        ),
        ("isinstance(self.ffn, MoEFeedForward)", 'hasattr(self, "moe")'),
        ("y, _ = self.ffn(", "y, _ = self.moe("),
        ("self.ffn.loss", "self.moe.loss"),
    )
    assert broken(adapted(tmp_path, "TinyGPT", source), FORMULA) == []
    wrong = (
        "return self.w2(F.silu(self.w1(x)) * self.w3(x))",
        "return self.w2(F.silu(self.w3(x)))",
    )
    assert asked_or_broken(tmp_path, "TinyGPT", source, *wrong, FORMULA)
