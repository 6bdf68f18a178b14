"""Constructors and calls as published packages write them, sound ones and wrong twins."""

import pytest
import torch
from proof import share
from torch import Tensor, nn
from torch.nn import functional

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt.reading import Unclear


def statuses(thing: type, component: str, *names: str) -> list[str]:
    """Return the status of clauses of `thing`, "question" where it is asked about."""
    try:
        backend = attentest.adapted(thing, component=component)
    except Unclear:
        return ["question"]
    bench = Bench.for_status(backend, effort=0.1)
    return [judge(bench, f"{component}.{one}").status.value for one in names]


class BroadNorm(nn.Module):
    """An RMS norm whose weight has the axes of its input."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1, 1, dim))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.alpha


class TwiceTrained(BroadNorm):
    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.beta = nn.Parameter(torch.zeros(1, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + 0 * self.beta


def test_a_weight_may_have_leading_axes_of_length_1():
    assert statuses(BroadNorm, "rms_norm", "parameters-trained", "formula") == ["pass", "pass"]
    backend = attentest.adapted(TwiceTrained, component="rms_norm", anyway=True)
    bench = Bench.for_status(backend, effort=0.1)
    assert judge(bench, "rms_norm.parameters-trained").status == "violation"


class Activated(nn.Module):
    """A feed-forward network that gets its activation by name, and widths under other names."""

    def __init__(self, num_model: int, widening_factor: float, act_type: object) -> None:
        super().__init__()
        self.act = {"relu": functional.relu, "gelu": functional.gelu}[act_type]
        inner = int(num_model * widening_factor)
        self.inner, self.outer = nn.Linear(num_model, inner), nn.Linear(inner, num_model)

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(self.act(self.inner(x)))


class Classed(Activated):
    """A feed-forward network that gets the class of its activation."""

    def __init__(self, num_model: int, widening_factor: float, act_layer: object) -> None:
        super().__init__(num_model, widening_factor, "relu")
        self.act = act_layer()


class Unactivated(Activated):
    def forward(self, x: Tensor) -> Tensor:
        return self.outer(self.inner(x))


class TwoThirds(nn.Module):
    """A gated network that takes two thirds of its width, and rounds it up to a multiple."""

    def __init__(self, dim: int, hidden_dim: int, multiple_of: int = 256) -> None:
        super().__init__()
        hidden_dim = int(2 * hidden_dim / 3)
        hidden_dim = multiple_of * ((hidden_dim + multiple_of - 1) // multiple_of)
        self.w1 = nn.Linear(dim, hidden_dim, bias=False)
        self.w2 = nn.Linear(hidden_dim, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden_dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.w2(functional.silu(self.w1(x)) * self.w3(x))


class LateActivation(TwoThirds):
    def forward(self, x: Tensor) -> Tensor:
        return self.w2(functional.silu(self.w1(x) * self.w3(x)))


@pytest.mark.parametrize(
    ("thing", "status"),
    [
        (Activated, "pass"),
        (Classed, "pass"),
        (Unactivated, "violation"),
        (TwoThirds, "pass"),
        (LateActivation, "violation"),
    ],
)
def test_feed_forward_networks_are_built_at_their_widths(thing, status):
    assert statuses(thing, "feed_forward", "formula") == [status]


class Tempered(nn.Module):
    """Attention that divides by what its caller gives."""

    def __init__(self, temperature: float) -> None:
        super().__init__()
        self.temperature = temperature

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        scores = torch.matmul(q / self.temperature, k.transpose(-1, -2))
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -torch.inf)
        return scores.softmax(-1) @ v


class TemperedTwice(Tempered):
    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        return super().forward(q / self.temperature, k, v, mask)


@pytest.mark.parametrize(("thing", "status"), [(Tempered, "pass"), (TemperedTwice, "violation")])
def test_a_temperature_is_the_root_of_the_width_of_a_head(thing, status):
    assert statuses(thing, "attention", "formula") == [status]


class CrossAttention(nn.Module):
    """Attention of a target to a source, as (src, tgt)."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(d_model, num_heads, batch_first=True)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        return self.inner(tgt, src, src, need_weights=False)[0]


class SameAttention(CrossAttention):
    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        return self.inner(tgt, src, tgt[:, :1] + 0 * src, need_weights=False)[0]


@pytest.mark.proof
@share(2, rest=1)
@pytest.mark.parametrize(
    ("thing", "status"), [(CrossAttention, "pass"), (SameAttention, "question")]
)
def test_a_target_attends_to_a_source(thing, status):
    assert statuses(thing, "multi_head_attention", "formula") == [status]


class Options(dict):  # type: ignore[type-arg]
    """A configuration whose class is a dictionary."""

    def __init__(self) -> None:
        super().__init__()


class ByOptions(nn.Module):
    def __init__(self, opt: Options, dim: int | None = None) -> None:
        super().__init__()
        dim, inner = dim or opt["embedding_size"], opt["ffn_size"]
        self.inner, self.outer = nn.Linear(dim, inner), nn.Linear(inner, dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(self.inner(x).relu())


def test_a_dictionary_of_options_is_read_by_its_keys():
    assert statuses(ByOptions, "feed_forward", "formula") == ["pass"]


class Optionals(nn.Module):
    """A feed-forward network with required arguments that may be None."""

    def __init__(self, din: int, n_hidden: int, adapter: nn.Module | None) -> None:
        super().__init__()
        self.adapter = adapter or nn.Identity()
        self.inner, self.outer = nn.Linear(din, n_hidden), nn.Linear(n_hidden, din)

    def forward(self, x: Tensor, state: "Tensor | None") -> Tensor:
        assert state is None
        return self.outer(self.adapter(self.inner(x)).relu())


def test_a_required_argument_that_may_be_none_is_none():
    assert statuses(Optionals, "feed_forward", "formula") == ["pass"]


def FeedForward(dim: int, mult: int = 4) -> nn.Module:  # noqa: N802
    """Make a feed-forward network."""
    return nn.Sequential(nn.Linear(dim, dim * mult), nn.GELU(), nn.Linear(dim * mult, dim))


def FeedForwardTwice(dim: int, mult: int = 4) -> nn.Module:  # noqa: N802
    """Make a feed-forward network that activates its output too."""
    return nn.Sequential(*FeedForward(dim, mult), nn.GELU())


@pytest.mark.parametrize(
    ("thing", "status"), [(FeedForward, "pass"), (FeedForwardTwice, "violation")]
)
def test_a_function_that_makes_a_module_is_judged_as_a_class(thing, status):
    assert statuses(thing, "feed_forward", "formula") == [status]


class LateRefusal(nn.Module):
    """Attention whose view refuses a width that the heads do not divide."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.heads, self.width = num_heads, d_model // num_heads
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        parts = self.qkv(x).chunk(3, dim=-1)
        query, key, value = (self.split(one, length).transpose(1, 2) for one in parts)
        weights = (query @ key.transpose(-1, -2) / self.width**0.5).softmax(-1)
        return self.out((weights @ value).transpose(1, 2).reshape(batch, length, -1))

    def split(self, x: Tensor, length: int) -> Tensor:
        return x.reshape(len(x), length, self.heads, self.width)


class CutColumns(LateRefusal):
    """Columns beyond the heads are left out, of the output too."""

    def split(self, x: Tensor, length: int) -> Tensor:
        return super().split(x[..., : self.heads * self.width], length)

    def forward(self, x: Tensor) -> Tensor:
        self.out.weight.data = self.out.weight.data[:, : self.heads * self.width]
        return super().forward(x)


class SpreadRows(LateRefusal):
    """Numbers move to other positions where the width is no multiple of the heads."""

    def split(self, x: Tensor, length: int) -> Tensor:
        return x.reshape(len(x), -1, self.heads, self.width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.qkv(x).chunk(3, dim=-1)
        query, key, value = (self.split(one, length).transpose(1, 2) for one in parts)
        weights = (query @ key.transpose(-1, -2) / self.width**0.5).softmax(-1)
        return self.out((weights @ value).transpose(1, 2).reshape(batch, length, width))


@pytest.mark.parametrize(
    ("thing", "found"),
    [
        (LateRefusal, ["pass", "warning"]),
        (CutColumns, ["violation", "pass"]),
        (SpreadRows, ["pass", "warning"]),
    ],
)
def test_a_width_that_heads_do_not_divide_may_be_refused_by_a_call(thing, found):
    names = ["indivisible-width-refused", "indivisible-width-named"]
    assert statuses(thing, "multi_head_attention", *names) == found


class OrderOrMask(nn.Module):
    """Attention that is causal where no mask is given: a mask says all by itself."""

    def __init__(self, dim: int, n_heads: int) -> None:
        super().__init__()
        if dim % n_heads:
            raise ValueError(f"{dim} is no multiple of {n_heads}")
        self.heads = n_heads
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        parts = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        result = functional.scaled_dot_product_attention(
            *parts, attn_mask=mask, is_causal=mask is None
        )
        return self.out(result.transpose(1, 2).flatten(2))


def test_a_mask_in_the_place_of_causality_is_asked_about():
    with pytest.raises(Unclear, match=r"only where no mask is given.*--give mask=None"):
        attentest.adapted(OrderOrMask, component="multi_head_attention")
    backend = attentest.adapted(OrderOrMask, "multi_head_attention", given={"mask": None})
    bench = Bench.for_status(backend, effort=0.1)
    assert judge(bench, "multi_head_attention.formula").status == "pass"


def sliced_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Return a loss that demands tensors of one piece, which parts of a batch may be."""
    batch, length, width = logits.shape
    flat = logits.view(batch * length, width)
    return functional.cross_entropy(flat, targets.view(batch * length), ignore_index=0)


def test_a_view_in_a_loss_is_one_finding():
    names = ["parts-recombine", "accumulated-gradient", "slices-accepted"]
    assert statuses(sliced_loss, "loss", *names) == ["pass", "pass", "warning"]


class CrossBlock(nn.Module):
    def __init__(self, d_model: int, d_ff: int, n_heads: int) -> None:
        super().__init__()
        self.inner = nn.TransformerDecoderLayer(d_model, n_heads, d_ff, batch_first=True)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        return self.inner(tgt, src)


def test_a_second_sequence_is_not_asked_for_as_a_value():
    with pytest.raises(Unclear, match=r"no input for src.*--as decoder_layer .*tried") as failure:
        attentest.adapted(CrossBlock, "encoder_layer")
    assert "--give" not in str(failure.value)


class GivenRotation(nn.Module):
    def __init__(self, dim: int, n_heads: int) -> None:
        super().__init__()

    def forward(self, x: Tensor, rope_cos: Tensor, rope_sin: Tensor) -> Tensor:
        return x * rope_cos + rope_sin


def feed_forward(x: Tensor, weight: Tensor) -> Tensor:
    return functional.relu(x @ weight) @ weight.mT


@pytest.mark.parametrize(
    ("thing", "component", "advice"),
    [
        (GivenRotation, "multi_head_attention", "rope_cos and rope_sin would carry rotary"),
        (feed_forward, "feed_forward", "Wrap it in a module"),
    ],
)
def test_no_value_is_asked_for_what_carries_tensors(thing, component, advice):
    with pytest.raises(Unclear, match=advice) as failure:
        attentest.adapted(thing, component)
    assert "--give" not in str(failure.value)


class BiasedScores(nn.Module):
    """Self-attention that adds its argument `bias` to the scores."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.out = nn.Linear(width, width), nn.Linear(width, width)

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def joined(self, scores: Tensor, bias: Tensor) -> Tensor:
        return scores + bias

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        query, key, value = (self.split(one(x)) for one in (self.query, self.key, self.value))
        scores = query @ key.mT / query.shape[-1] ** 0.5
        mixed = self.joined(scores, bias).softmax(-1) @ value
        return self.out(mixed.transpose(1, 2).flatten(2))


class BiasAfterSoftmax(BiasedScores):
    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        query, key, value = (self.split(one(x)) for one in (self.query, self.key, self.value))
        weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
        return self.out(((weights + bias) @ value).transpose(1, 2).flatten(2))


def test_an_argument_called_bias_is_a_mask_that_is_added_to_the_scores():
    names = ("formula", "masked-keys-ignored")
    component = "multi_head_attention"
    assert set(statuses(BiasedScores, component, *names)) <= {"pass"}
    assert set(statuses(BiasAfterSoftmax, component, *names)) <= {"question", "violation"}
