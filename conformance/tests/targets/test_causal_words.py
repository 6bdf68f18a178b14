"""Documentation that calls code causal: where the numbers say otherwise, it is asked about."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

from attentest.targets.adapt import Unclear
from attentest.targets.adapt.advice.causal_words import causal_words
from attentest.targets.adapt.advice.own_order import causal_by_name

CODE = '''
import torch.nn.functional as F
from torch import nn


class SelfAttention(nn.Module):
    """Causal self-attention."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in self.to_qkv(x).chunk(3, -1)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.to_out(mixed.transpose(1, 2).flatten(2))
'''
MISTAKE = CODE.replace(", is_causal=True", "")
OF_FILE = '"""A GPT attention layer."""\n' + MISTAKE.replace("Causal self", "Self")


def test_causal_code_that_is_documented_so_is_read(tmp_path: Path) -> None:
    assert adapted(tmp_path, "SelfAttention", CODE)


@pytest.mark.parametrize("code", [MISTAKE, OF_FILE])
def test_code_that_is_documented_as_causal_and_is_not_is_a_question(
    tmp_path: Path, code: str
) -> None:
    with pytest.raises(Unclear, match="its output at a position changes with later positions"):
        adapted(tmp_path, "SelfAttention", code)


@pytest.mark.parametrize("order", ["by-mask", "built-in"])
def test_the_advised_choice_has_it_judged(tmp_path: Path, order: str) -> None:
    assert adapted(tmp_path, "SelfAttention", MISTAKE, choices={"attention_causality": order})


def test_documentation_of_a_file_of_several_classes_is_not_that_of_each(tmp_path: Path) -> None:
    other = OF_FILE + "\n\nclass Other(nn.Module):\n    x = 1\n"
    assert adapted(tmp_path, "SelfAttention", other)


@pytest.mark.parametrize(
    "documentation",
    [
        "Self-attention, causal only if the decoder asks for it.",
        "Non-causal self-attention of an encoder.",
        "Attention as in a causal language model, but not causal attention.",
        "A block of BERT, unlike a GPT block.",
        "Works with the causal attention mask of the caller.",
        "Supports causal attention. Padding is hidden.",
        "A layer for causal inference of treatment effects.",
        "Multi-head attention.",
        "Masked autoencoder with a transformer block.",
        "An encoder for masked language models, in layers.",
    ],
)
def test_other_documentation_does_not_call_code_causal(documentation: str) -> None:
    assert causal_words(documentation) == ""


@pytest.mark.parametrize(
    ("documentation", "words"),
    [
        ("Causal multi-head self-attention.", "Causal multi-head self-attention"),
        ("A pre-norm GPT-2 block with GELU.", "GPT-2 block"),
        ("One layer. Each token cannot see later tokens.", "cannot see later"),
        ("Masked self-attention (Vaswani et al.)", "Masked self-attention"),
    ],
)
def test_documentation_calls_code_causal(documentation: str, words: str) -> None:
    assert causal_words(documentation) == words


def _asked_or_broken(folder: Path, name: str, code: str) -> bool:
    try:
        backend = adapted(folder, name, code)
    except Unclear:
        return True
    return bool(broken(backend, "multi_head_attention.formula"))


@pytest.mark.parametrize(
    ("name", "is_right"), [("NonCausalSelfAttention", True), ("CausalSelfAttention", False)]
)
def test_name_that_denies_order_is_not_one_that_says_it(
    tmp_path: Path, name: str, is_right: bool
) -> None:
    code = MISTAKE.replace('    """Causal self-attention."""\n', "").replace("SelfAttention", name)
    assert _asked_or_broken(tmp_path, name, code) is not is_right
    (tmp_path / "ordered").mkdir()
    ordered = code.replace("(q, k, v)", "(q, k, v, is_causal=True)")
    assert _asked_or_broken(tmp_path / "ordered", name, ordered) is is_right


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("CausalSelfAttention", True),
        ("llama_causal_attention", True),
        ("LlamaCausalAttn", True),
        ("noncausal_attention", False),
        ("NonCausalAttention", False),
        ("AcausalMixer", False),
        ("SelfAttention", None),
    ],
)
def test_names_say_order_or_deny_it(name: str, said: bool | None) -> None:
    assert causal_by_name(name) is said
