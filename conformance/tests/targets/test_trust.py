"""A verdict needs a reading that fits: what the spec does not cover is a question."""

import sys

import pytest
import torch
from folders import SUPPORT
from mistaken_code import asked
from proof import share
from torch import nn

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.plan import select

WILD = SUPPORT / "wild"
sys.path.insert(0, str(WILD))

UNCOVERED = [
    ("RMSNorm", "layer_norm", "does not subtract the mean: it is an RMS norm"),
    ("PlusOneNorm", "layer_norm", "it is an RMS norm"),
    ("LayerNorm", "", "it is an RMS norm"),
    ("RotaryAttention", "multi_head_attention", "depends on the positions of the keys"),
    ("GroupedQueryAttention", "multi_head_attention", "(grouped-query attention)"),
    (
        "NormedQueries",
        "multi_head_attention",
        "q_norm subtracts the mean: it is a layer norm of queries or keys",
    ),
    ("OnePlusNorm", "layer_norm", "it multiplies by 1 + weight"),
    ("TrainedScale", "positional_encoding", "no place for its parameters alpha"),
    ("NormalisedTable", "positional_encoding", "the table of interleaved times 0.4082"),
    ("causal_attention", "attention", "it hides later positions by itself"),
    ("RotaryDecoderLayer", "decoder_layer", "depends on the positions of the keys"),
]
"""Sound code that is no component of the spec, the component where the name does not say it."""


@share(9)
@pytest.mark.parametrize(("name", "component", "said"), UNCOVERED)
def test_code_that_is_not_covered_is_recognised_and_not_judged(name, component, said):
    text = asked(str(WILD / f"uncovered.py:{name}"), component)
    assert said in text
    assert "--anyway" in text


def test_layer_that_hides_later_positions_by_itself_is_judged_without_that_mask():
    target = str(WILD / "uncovered.py:CausalDecoderLayer")
    report = attentest.check(target, clauses=["decoder.layer-formula"])
    assert report.conforms
    assert any("hides later positions by itself" in one for one in report.inferred)


@pytest.mark.exhaustive
def test_advice_for_a_guessed_name_leaves_out_what_would_not_help():
    asked_by_name = asked(str(WILD / "uncovered.py:RotaryDecoderLayer"))
    assert "depends on the positions of the keys" in asked_by_name
    assert "--as" not in asked_by_name


def test_code_is_judged_anyway_where_the_user_wants_it():
    target = str(WILD / "uncovered.py:RMSNorm")
    report = attentest.check(target, "layer_norm", anyway=True, clauses=["layer_norm.formula"])
    assert report["layer_norm.formula"].status == "violation"


@pytest.mark.proof
@share(2)
@pytest.mark.parametrize(
    ("name", "component"),
    [
        ("RMSNorm", "rms_norm"),
        ("PlusOneNorm", "rms_norm"),
        ("SwiGLU", "feed_forward"),
        ("GEGLU", "feed_forward"),
        ("CausalWithMask", "multi_head_attention"),
    ],
)
def test_parts_of_decoder_only_models_are_judged(name, component):
    slug = f"{component}.formula"
    report = attentest.check(str(WILD / f"uncovered.py:{name}"), component, clauses=[slug])
    assert report[slug].status == "pass", str(report)


@pytest.mark.proof
def test_a_decoder_layer_that_hides_nothing_by_itself_is_judged():
    slug = "decoder.layer-formula"
    target = str(WILD / "uncovered.py:DecoderLayer")
    report = attentest.check(target, "decoder_layer", clauses=[slug])
    assert report[slug].status == "pass", str(report)


def test_a_causal_attention_is_judged_without_its_mask():
    target = str(WILD / "uncovered.py:CausalWithMask")
    slugs = ["multi_head_attention.formula"]
    report = attentest.check(target, slugs[0].split(".")[0], given={"mask": None}, clauses=slugs)
    assert report[slugs[0]].status == "pass", str(report)


def test_a_layout_that_fits_by_a_view_of_the_mask_is_measured():
    """(5, 2, 12) with the mask viewed by the first axis is no sign of sequence first."""
    target, slug = str(WILD / "published.py:MultiHeadAttention"), "multi_head_attention.formula"
    report = attentest.check(target, clauses=[slug])
    assert report[slug].status == "pass", str(report)
    read = "\n".join(report.inferred)
    assert "(B, L, D), batch first (as a probing call shows)" in read
    assert "shaped (B, Q, K), one for all heads (as a probing call shows)" in read


@share(2)
@pytest.mark.parametrize(
    ("name", "clause", "said"),
    [
        ("MultiHeadAttentionOfTheKey", "multi_head_attention.formula", "value and key are one"),
        ("FeedForward", "feed_forward.formula", "hidden_act='relu'"),
        ("MultiHeadSelfAttention", "multi_head_attention.formula", "query=input_tensor"),
        ("get_lookahead_mask", "masks.causal-keeps-past", "device given as 'cpu'"),
    ],
)
def test_common_signatures_are_read_without_an_option(name, clause, said):
    report = attentest.check(str(WILD / f"published.py:{name}"), clauses=[clause])
    assert report[clause].status == "pass", str(report)
    assert said in "\n".join(report.inferred)


class BiasedNorm(nn.Module):
    """A layer norm that forgets to subtract the mean."""

    def __init__(self, d_model):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        return self.gamma * x / (x.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt() + self.beta


class UnnamedAttention(nn.Module):
    """Four unnamed projections, and no scale."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.linears = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        q, k, v = (
            one(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for one in self.linears[:3]
        )
        return self.linears[3](((q @ k.mT).softmax(-1) @ v).transpose(1, 2).flatten(-2))


class ViewedAttention(UnnamedAttention):
    """Splits heads by a view without a transposition."""

    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))
        del self.linears

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (
            one(x).view(b, self.num_heads, n, d // self.num_heads)
            for one in (self.q, self.k, self.v)
        )
        weights = (q @ k.mT / (d // self.num_heads) ** 0.5).softmax(-1)
        return self.o((weights @ v).transpose(1, 2).reshape(b, n, d))


class OwnAttention(nn.Module):
    """Attention without parameters, and without a scale."""

    def forward(self, q, k, v):
        return (q @ k.mT).softmax(-1) @ v


class Waves(nn.Module):
    """Sines that double their exponent, in a buffer."""

    def __init__(self, d_model, max_len=64):
        super().__init__()
        speeds = 10.0 ** -torch.arange(0, d_model, 2, dtype=torch.float64)
        angles = torch.arange(max_len, dtype=torch.float64)[:, None] * speeds
        table = torch.stack((angles.sin(), angles.cos()), -1).flatten(-2)
        self.register_buffer("table", table[None, :, :d_model])

    def forward(self, x):
        return x + self.table[:, : x.size(1)]


@share(2)
@pytest.mark.parametrize(
    ("thing", "component"),
    [
        (OwnAttention, "attention"),
        (Waves, "positional_encoding"),
        (BiasedNorm, "layer_norm"),
        (UnnamedAttention, "multi_head_attention"),
        (ViewedAttention, "multi_head_attention"),
    ],
)
def test_a_mistake_in_the_structure_of_the_component_is_still_judged(thing, component):
    backend = attentest.adapted(thing, component)
    bench = Bench.for_status(backend)
    assert judge(bench, f"{component}.formula").status == "violation"


def test_a_mask_that_no_call_accepts_is_asked_about():
    def attention(q, k, v, mask=None):
        if mask is not None:
            raise RuntimeError("no masks today")
        return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v

    assert "--give mask=None" in asked(attention)
    report = attentest.check(attention, given={"mask": None}, clauses=["attention.formula"])
    assert report["attention.formula"].status == "pass"


def per_sample(q, k, v, mask=None):
    """Attend; mask is a boolean tensor of shape (B, Q, K), True may be attended."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ v


def per_head(q, k, v, mask=None):
    """Attend; mask: (B, H, Q, K), True may be attended."""
    if mask is not None and mask.ndim != 3:
        raise ValueError("three axes are needed")
    return per_sample(q, k, v, None if mask is None else mask[:, None])


def test_a_documented_mask_that_works_by_chance_alone_is_a_mistake():
    backend = attentest.adapted(per_sample, "attention")
    read = "\n".join(backend.understood)
    assert "works only where the batch is as large as the heads" in read
    assert "one for all heads" in read
    bench = Bench.for_status(backend)
    assert judge(bench, "attention.masked-keys-ignored").status in ("error", "violation")


def test_a_documented_shape_that_no_call_takes_gives_way():
    report = attentest.check(per_head, "attention", clauses=["attention.formula"])
    assert "no call takes the documented shape" in "\n".join(report.inferred)
    assert report.conforms, str(report)


class NoOutputForOneHead(UnnamedAttention):
    """Leaves out the output projection where there is one head, as a vision library does."""

    def __init__(self, d_model, num_heads):
        assert d_model % num_heads == 0
        super().__init__(d_model, num_heads)
        if num_heads == 1:
            self.linears[3] = nn.Identity()

    def forward(self, x):
        q, k, v = (
            one(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for one in self.linears[:3]
        )
        weights = (q @ k.mT * q.size(-1) ** -0.5).softmax(-1)
        return self.linears[3]((weights @ v).transpose(1, 2).flatten(-2))


class RefusesOneHead(NoOutputForOneHead):
    """Has no projection for one head, and says so."""

    def __init__(self, d_model, num_heads):
        assert num_heads > 1, "one head is no multi-head attention"
        super().__init__(d_model, num_heads)


@pytest.mark.parametrize("made", [NoOutputForOneHead, RefusesOneHead])
def test_another_design_with_one_head_is_judged_with_several(made):
    backend = attentest.adapted(made, "multi_head_attention")
    assert "assumed that one head is another design" in "\n".join(backend.understood)
    bench = Bench.for_status(backend, effort=0.1)
    verdicts = [judge(bench, slug) for slug in select(["multi_head_attention"])]
    assert not [one for one in verdicts if one.status.fails]
    assert sum(one.status.judged for one in verdicts) > 15


class MaskedFromBothSides(UnnamedAttention):
    """Takes one mask for its rows and one for its context, which it multiplies."""

    def __init__(self, d_model, num_heads):
        super().__init__(d_model, num_heads)
        self.to_q, self.to_k, self.to_v, self.to_out = self.linears
        del self.linears

    def forward(self, x, mask=None, context_mask=None):
        split = (self.num_heads, -1)
        q, k, v = (
            one(x).unflatten(-1, split).transpose(1, 2) for one in (self.to_q, self.to_k, self.to_v)
        )
        scores = q @ k.mT * q.size(-1) ** -0.5
        if mask is not None or context_mask is not None:
            rows = torch.ones(x.shape[:2]) if mask is None else mask.view(x.shape[:2])
            keys = rows if context_mask is None else context_mask.view(x.shape[:2])
            scores = scores.masked_fill((rows[:, None, :, None] * keys[:, None, None]) < 0, -1e9)
            scores = scores[:, :, : int(rows.sum() > 99)]
        return self.to_out((scores.softmax(-1) @ v).transpose(1, 2).flatten(-2))


def test_all_masks_that_are_not_accepted_are_asked_about_at_once():
    text = asked(MaskedFromBothSides, "multi_head_attention")
    assert "--give mask=None --give context_mask=None (in Python: " in text
    given = {"mask": None, "context_mask": None}
    slug = "multi_head_attention.formula"
    backend = attentest.adapted(MaskedFromBothSides, "multi_head_attention", given=given)
    assert judge(Bench(backend, effort=0.1), slug).status == "pass"


def causal_mask(length):
    return torch.ones(length, length, dtype=torch.bool).tril(-1)


def test_a_wrong_mask_is_asked_for_its_meaning_and_then_judged():
    assert "--set mask=keep or --set mask=blocks" in asked(causal_mask)
    report = attentest.check(causal_mask, mask="keep")
    assert not report.conforms


def test_one_tensor_can_be_key_and_value():
    class MemoryAttention(nn.Module):
        def __init__(self, d_model, num_heads):
            super().__init__()
            self.inner = nn.MultiheadAttention(d_model, num_heads, batch_first=True)

        def forward(self, tokens, other):
            return self.inner(tokens, other, other, need_weights=False)[0]

    roles = {"query": "tokens", "key": "other", "value": "other"}
    report = attentest.check(MemoryAttention, "multi_head_attention", arguments=roles)
    assert "value and key are one" in "\n".join(report.inferred)
    assert not [verdict.clause for verdict in report if verdict.status.fails], str(report)
    assert report["multi_head_attention.formula"].status == "pass"


def flagged(q, k, v, mask=None):
    """The mask is a flag: where there is one, later positions are hidden."""
    return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=mask is not None)


def test_a_mask_whose_entries_mean_nothing_is_asked_about():
    assert "any mask hides later positions, whatever its entries are" in asked(flagged, "attention")
    slugs = ["attention.formula"]
    report = attentest.check(flagged, "attention", given={"mask": None}, clauses=slugs)
    assert report[slugs[0]].status == "pass", str(report)
