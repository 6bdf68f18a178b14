"""`attentest check FILE.py`: every component of a file, each judged by its own."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from folders import SUPPORT

import attentest
from attentest.harness.errors import Unavailable
from attentest.interfaces import files
from attentest.interfaces.cli.main import main
from attentest.judging.bench import Bench
from attentest.judging.judge import judge

FILE = SUPPORT / "wild_files" / "mixed.py"
NUMBERS = ("--clause", "attention.formula", "--clause", "feed_forward.formula")
NUMBERS = (*NUMBERS, "--clause", "embedding.scale", "--no-shrink")


def check(*words: str) -> Result:
    return CliRunner().invoke(main, ["check", *map(str, words)])


def test_every_component_of_a_file_has_a_line_and_then_a_block():
    result = check(FILE, *NUMBERS)
    assert result.exit_code == 1, result.output
    lines = [line.split() for line in result.output.splitlines()]
    assert ["FeedForward", "feed_forward", "conforming"] in [one[:3] for one in lines]
    assert ["attention", "attention", "1", "violation"] in lines
    assert ["no", "component:", "clones,", "Settings"] in lines
    assert "FancyDecoderLayer(spam) cannot be built as decoder_layer" in result.output
    assert "LayerNorm" not in result.output
    assert result.output.index("1 violation") < result.output.index("understood: attention")
    assert "understood: 2 calls more, listed by --full" in result.output
    assert "2 of 3 judged components conform" in " ".join(result.output.split())
    said = " ".join(result.output.split())
    assert said.endswith("not judged, see the question: FancyDecoderLayer")


def test_a_file_without_a_violation_exits_with_0(tmp_path: Path):
    source = FILE.read_text()
    cut = source.index("class Embeddings")
    (tmp_path / "good.py").write_text(source[:cut])
    result = check(tmp_path / "good.py", "--clause", "feed_forward.formula")
    assert result.exit_code == 0, result.output
    assert "1 of 1 judged component conforms" in " ".join(result.output.split())


ASKING = """

class FancyDecoderLayer(nn.Module):
    def __init__(self, spam):
        super().__init__()

    def forward(self, x):
        return x
"""


@pytest.mark.proof
def test_a_question_next_to_what_conforms_exits_with_3_and_the_last_line_says_so(tmp_path: Path):
    source = FILE.read_text()
    (tmp_path / "asking.py").write_text(source[: source.index("class Embeddings")] + ASKING)
    result = check(tmp_path / "asking.py", "--clause", "feed_forward.formula")
    assert result.exit_code == 3, result.output
    said = " ".join(result.output.split())
    assert "FancyDecoderLayer - question: see below" in said
    assert "1 of 1 judged component conforms" in said
    assert said.endswith("not judged (exit code 3), see the question: FancyDecoderLayer")
    words = ("--clause", "feed_forward.formula", "--format", "github")
    annotated = check(tmp_path / "asking.py", *words)
    assert annotated.exit_code == 3
    assert " ".join(annotated.output.split()).endswith("see the question: FancyDecoderLayer")


@pytest.mark.parametrize("text", ["", "class Plain:\n    pass\n"])
def test_a_file_in_which_nothing_could_be_judged_exits_with_3(text: str, tmp_path: Path):
    (tmp_path / "none.py").write_text(text)
    result = check(tmp_path / "none.py")
    assert result.exit_code == 3, result.output
    assert "Traceback" not in result.output


def test_a_module_is_judged_as_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    source = FILE.read_text()
    (tmp_path / "mixed_module.py").write_text(source[: source.index("class Embeddings")])
    monkeypatch.chdir(tmp_path)
    result = check("mixed_module", "--clause", "feed_forward.formula")
    assert result.exit_code == 0, result.output
    assert "FeedForward" in result.output


def test_the_python_function_judges_a_file():
    report = attentest.check(str(FILE), clauses=["attention.shapes", "feed_forward.formula"])
    assert not report.failures
    assert not report.conforms  # one class of the file is a question
    assert "feed_forward  conforming" in str(report)
    assert report["attention.shapes"].status == "pass"


@pytest.mark.proof
def test_a_written_adapter_gives_the_same_verdicts(tmp_path: Path, monkeypatch):
    target = f"{SUPPORT}/wild_models/blocking.py:TranslationModel"
    file = tmp_path / "adapter.py"
    slugs = ["model.formula", "model.causality", "model.tying"]
    words = [word for slug in slugs for word in ("--clause", slug)]
    result = check(target, "--write-adapter", file, *words)
    assert result.exit_code == 0, result.output
    compile(file.read_text(), "adapter.py", "exec")
    backends = [attentest.adapted(target), attentest.adapted(str(file))]
    assert "understood" not in vars(backends[1])
    first, second = (
        [judge(Bench(one, shrink=False, effort=0.3), slug).status for slug in slugs]
        for one in backends
    )
    assert first == second
    text = file.read_text()
    again = check(target, "--write-adapter", file, *words)
    assert again.exit_code == 2
    assert "exists and was left as it is" in again.output
    assert file.read_text() == text


def test_an_adapter_of_several_components_is_not_written(tmp_path: Path):
    result = check(FILE, "--write-adapter", tmp_path / "adapter.py", *NUMBERS)
    assert result.exit_code == 2
    assert "name one of" in result.output
    assert not list(tmp_path.iterdir())


HINTS = '''
import torch
from torch import nn


class PointwiseNet(nn.Module):
    """A feed-forward network whose name does not say so."""


class TinyFFN(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.inner, self.outer = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        return self.outer(torch.relu(self.inner(x)))


class EncoderPooling(nn.Module):
    def forward(self, x):
        return x.mean(dim=1)
'''


def test_class_whose_name_hints_at_a_component_is_judged_where_its_numbers_fit(tmp_path: Path):
    (tmp_path / "hints.py").write_text(HINTS)
    result = check(tmp_path / "hints.py", "--clause", "feed_forward.formula", "--no-shrink")
    assert result.exit_code == 0, result.output
    lines = [" ".join(line.split()) for line in result.output.splitlines()]
    assert "TinyFFN feed_forward conforming (1 of 1 judged clauses)" in lines
    assert "PointwiseNet - not a component" in lines
    hint = "not judged: its name only hints at encoder, see below"
    assert f"EncoderPooling - {hint}" in lines
    assert lines[-1].endswith("not judged: EncoderPooling")


@pytest.mark.proof
def test_class_whose_name_hints_at_what_it_is_not_gets_one_sentence(tmp_path: Path):
    (tmp_path / "hints.py").write_text(HINTS)
    result = check(tmp_path / "hints.py", "--clause", "encoder.formula", "--no-shrink")
    assert result.exit_code == 3, result.output
    said = " ".join(result.output.split())
    assert "EncoderPooling - not judged: its name only hints at encoder, see below" in said
    sentence = said.partition("== EncoderPooling ")[2].partition(" == ")[0]
    assert sentence.startswith("EncoderPooling could not be called as encoder. More: attentest")
    assert f"More: attentest check {tmp_path / 'hints.py'}:EncoderPooling" in sentence


OVERLOOKED = """
import torch
from torch import nn


def hide_later(scores):
    return scores.masked_fill(torch.ones_like(scores).triu(2).bool(), -torch.inf)


class Translator(nn.Module):
    def forward(self, pairs):
        return pairs


class CausalHead(nn.Module):
    def __init__(self, n_embd, head_size):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size)
        self.query = nn.Linear(n_embd, head_size)
        self.value = nn.Linear(n_embd, head_size)

    def forward(self, x):
        scores = self.query(x) @ self.key(x).mT * self.key.out_features**-0.5
        later = torch.ones_like(scores).triu(1).bool()
        return scores.masked_fill(later, -torch.inf).softmax(-1) @ self.value(x)


def squared(step):
    return step**2
"""


def test_code_that_may_be_a_mask_or_a_model_is_named_where_it_is_not_judged(tmp_path: Path):
    (tmp_path / "overlooked.py").write_text(HINTS + OVERLOOKED)
    result = check(tmp_path / "overlooked.py", "--clause", "feed_forward.formula", "--no-shrink")
    lines = [" ".join(line.split()) for line in result.output.splitlines()]
    assert "hide_later - not judged: it may be a mask, add --as COMPONENT to its name" in lines
    assert "Translator - not judged: it may be a model, add --as COMPONENT to its name" in lines
    one_head = "not judged: it may be one head of attention, judge the class that joins its heads"
    assert f"CausalHead - {one_head}" in lines
    assert any(re.fullmatch("no component: .*squared", one) for one in lines)
    left = (
        "not judged: EncoderPooling, hide_later, CausalHead; NOT judged, and may be a whole model"
    )
    assert f"{left}: Translator" in " ".join(result.output.split())
    assert result.exit_code == 0


TURNED = """
import torch
from torch import nn


def apply_rope(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.n_head = n_head
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x, cos, sin):
        b, t, c = x.shape
        q, k, v = (
            one.view(b, t, self.n_head, -1).transpose(1, 2) for one in self.qkv(x).split(c, -1)
        )
        q, k = apply_rope(q, cos, sin), apply_rope(k, cos, sin)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(b, t, c))
"""


@pytest.mark.proof
def test_function_that_turns_heads_is_part_of_the_attention_that_calls_it(tmp_path: Path):
    (tmp_path / "turned.py").write_text(TURNED)
    result = check(tmp_path / "turned.py", "--clause", "multi_head_attention.formula")
    lines = [" ".join(line.split()) for line in result.output.splitlines()]
    assert "apply_rope rotary part of CausalSelfAttention" in lines
    assert all(len(line) <= 80 for line in result.output.splitlines() if str(tmp_path) not in line)
    assert result.exit_code == 0


HINTED = """
from torch import nn


class GemmaMLP(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.a, self.b = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.b(self.a(x).sin())
"""


def test_question_about_a_hint_names_the_line(tmp_path: Path):
    (tmp_path / "net.py").write_text(HINTED)
    result = check(tmp_path / "net.py", "--clause", "feed_forward.formula")
    said = " ".join(result.output.split())
    assert "In the nearest reading, the first step that differs is 'activated': net.py:" in said
    assert result.exit_code == 3


FUNCTIONS = """
import numpy as np


def ref_attention(Q, K, V):
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ V


def ref_layernorm(x, gamma, beta, eps=1e-5):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt(x.var(-1, keepdims=True) + eps) * gamma + beta


def row_attention(weights, values, axis):
    return np.moveaxis(weights, axis, -1) @ values


def plot_attention(weights, names, size):
    return weights.mean()


def inner_attention(a, b, c):
    return a @ b @ c


def outer(a, b, c):
    return inner_attention(a, b, c)
"""


@pytest.mark.proof
def test_functions_are_judged_by_the_last_words_of_their_names(tmp_path: Path):
    file = tmp_path / "functions.py"
    file.write_text(FUNCTIONS)
    result = check(file, "--clause", "attention.formula", "--clause", "layer_norm.formula")
    lines = [" ".join(line.split()) for line in result.output.splitlines()]
    assert "ref_attention attention conforming (1 of 1 judged clauses)" in lines
    assert "ref_layernorm layer_norm conforming (1 of 1 judged clauses)" in lines
    hint = "row_attention - not judged: its name only hints at attention, see below"
    assert hint in lines
    assert "no component: plot_attention, inner_attention, outer" in lines
    assert result.exit_code == 0, result.output
    file.write_text(FUNCTIONS.replace(" / np.sqrt(Q.shape[-1])", " / Q.shape[-1]"))
    result = check(file, "--clause", "attention.formula")
    assert "ref_attention - question: see below" in " ".join(result.output.split())
    assert result.exit_code == 3


SETTINGS = """
from torch import nn


class Config(dict):
    __getattr__ = dict.__getitem__


class MLP(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.down(self.up(x).relu())


class LanguageModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.body = MLP(config.d_model, config.d_ff)

    def forward(self, ids):
        return self.body(ids)
"""


def test_a_class_of_settings_that_is_a_dictionary_hides_no_member(tmp_path: Path):
    (tmp_path / "own.py").write_text(SETTINGS)
    result = check(tmp_path / "own.py", "--clause", "feed_forward.formula")
    assert result.exit_code == 3, result.output
    assert "LanguageModel language_model question: see below" in " ".join(result.output.split())


def test_a_file_whose_members_cannot_be_listed_does_not_conform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def fails(*_: object) -> None:
        raise Unavailable("ValueError: no signature found")

    (tmp_path / "own.py").write_text(SETTINGS)
    monkeypatch.setattr(files, "remote_members", fails)
    result = check(tmp_path / "own.py", "--clause", "feed_forward.formula")
    assert result.exit_code == 3, result.output
    assert "(ValueError: no signature found)" in " ".join(result.output.split())
