"""Code that was not written for the contract: read, put behind it, and judged."""

import sys
from collections.abc import Callable

import pytest
import torch
from folders import SUPPORT
from proof import share

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt import Unclear
from attentest_spec import UnknownName
from attentest_spec.clauses import clauses
from attentest_spec.registry import LoadFailure

WILD = SUPPORT / "wild"
sys.path.insert(0, str(WILD))

SOUND = [
    ("attention.py:attention", "mask: True may be attended; any shape", "weights as part 1"),
    ("attention.py:scaled_dot_product_attention", "True blocks", "output as part 1", "(B, L, E)"),
    ("attention.py:attend", "added to the scores", "key=keys", "(B, H, L, E)", "output alone"),
    ("attention.py:dot_product_attention", "True may be attended", "by its name", "(B, L, H, E)"),
    ("attention.py:sdpa", "the float 1.0 may be attended", "'context'", "'attn_weights'"),
    ("attention.py:scaled_attention", "(L, E), one head of one sample", "mask=M"),
    ("attention.py:softmax_attention", "True blocks", "by its documentation", "'output'"),
    ("attention.py:ScaledDotProductAttention", "d_k given as the width of a key"),
    ("multi_head_attention.py:MultiHeadAttention", "query=q, key=k, value=v", "True blocks"),
    ("multi_head_attention.py:MultiHeadedAttention", "(B, Q, K), one for all heads", "h=heads"),
    ("multi_head_attention.py:CausalSelfAttention", "hides later positions", "n_embd=d_model"),
    ("multi_head_attention.py:MultiHeadSelfAttention", "by its documentation", "query=x"),
    ("multi_head_attention.py:Attention", "judged as multi_head_attention", "takes no mask"),
    ("multi_head_attention.py:MHA", "sequence first", "key_padding_mask: True blocks"),
    ("multi_head_attention.py:CrossAttention", "added to the scores", "value and key are one"),
]
"""Sound code, and what is said of how it was read."""

PARTS = [
    ("LayerNorm", "", "features=d_model", "norm_epsilon: 1e-06, measured"),
    ("PositionwiseFeedForward", "", "d_ff=d_ff", '"inner": "w_1"'),
    (
        "Mlp",
        "",
        "mlp_ratio=d_ff/d_model",
        "assumed activation=gelu, as measured: if you meant relu",
    ),
    ("FeedForward", "", "input_dim=d_model, hidden_dim=d_ff, output_dim=d_model"),
    ("PositionalEncoding", "", "max_len=max_length", "batch first"),
    ("SequenceFirstPositionalEncoding", "positional_encoding", "sequence first"),
    ("Embeddings", "", "vocab=source_vocabulary"),
    ("TokenEmbedding", "", "tokens=token_ids", "assumed embedding_scale=none"),
    ("SublayerConnection", "", "sublayer=sublayer", "assumed norm_placement=pre"),
    ("MLP", "", "its inner layer is 4 times as wide as the model"),
    ("Generator", "", "vocab=target_vocabulary", "assumed output=log-probabilities"),
    ("EncoderLayer", "", "mask: True may be attended; shaped (B, Q, K)"),
    ("TransformerEncoderBlock", "", "sequence first", "shaped (B, K)", "norm_placement=pre"),
    ("DecoderLayer", "", "source_mask=src_mask", "memory=enc_output"),
]
"""Sound classes of other components, the component where the name does not say it."""

MASKS = [
    ("make_pad_mask", "padding_mask", "True or 1 may be attended (as a probing call shows)"),
    ("padding_mask", "", "True or 1 blocks (by its documentation)"),
    ("subsequent_mask", "", "True or 1 may be attended"),
    ("generate_square_subsequent_mask", "", "minus infinity is added"),
    ("make_trg_mask", "", "tokens=trg, pad=pad"),
]
"""Functions that make masks, all sound."""

BROKEN = [
    ("attention_without_scale", "attention.formula"),
    ("attention_inverting_one_head", "attention.masked-keys-ignored"),
    ("attention_ignoring_the_mask", "attention.masked-keys-ignored"),
    ("attention_over_queries", "attention.formula"),
    ("attention_telling_other_weights", "attention.weights-used"),
    ("attention_masking_after", "attention.rows-sum-to-one"),
    ("attention_adding_almost_nothing", "attention.masked-keys-ignored"),
    ("MultiHeadAttentionMerged", "multi_head_attention.query-order"),
    ("MultiHeadAttentionUnscaled", "multi_head_attention.formula"),
    ("MultiHeadAttentionDeaf", "multi_head_attention.masked-keys-ignored"),
    ("CausalSelfAttention", "multi_head_attention.formula"),
    ("SelfAttentionMaskingQueries", "multi_head_attention.masked-keys-ignored"),
    ("FeedForward", "feed_forward.formula"),
    ("Embeddings", "embedding.scale"),
    ("EncoderLayer", "encoder.layer-formula"),
    ("DecoderLayer", "decoder.layer-formula"),
]
"""Code with a mistake, and a clause that must tell it."""

CONTRARY = [
    ("attention_hiding_what_is_kept", "mask", "keep", "blocks", "attention.masked-keys-ignored"),
    (
        *("MHAInverted", "mask", "key_padding_mask:blocks", "key_padding_mask:keep"),
        "multi_head_attention.masked-keys-ignored",
    ),
    (
        *("MultiHeadAttentionAcross", "layout", "batch-first", "sequence-first"),
        "multi_head_attention.formula",
    ),
]
"""Code whose words say one convention and whose numbers show another, and a clause that breaks
where the words are right."""


@share(6)
@pytest.mark.parametrize(("target", "said"), [(one, rest) for one, *rest in SOUND])
def test_sound_code_is_understood_and_conforms(target: str, said: list[str]) -> None:
    report = attentest.check(str(WILD / target))
    read = "\n".join(report.inferred)
    for sentence in said:
        assert sentence in read, read
    assert report.conforms, str(report)
    assert sum(verdict.status != "absent" for verdict in report) >= 10, str(report)


@share(4)
@pytest.mark.parametrize(("name", "component", "said"), [(a, b, rest) for a, b, *rest in PARTS])
def test_classes_of_other_components_conform(name: str, component: str, said: list[str]) -> None:
    report = attentest.check(str(WILD / f"parts.py:{name}"), component)
    read = "\n".join(report.inferred)
    for sentence in said:
        assert sentence in read, read
    assert report.conforms, str(report)
    assert sum(verdict.status != "absent" for verdict in report) >= 9, str(report)


@pytest.mark.proof
@share(2)
@pytest.mark.parametrize("name", ["Encoder", "Decoder"])
def test_stacks_conform(name: str) -> None:
    report = attentest.check(str(WILD / f"stacks.py:{name}"))
    assert report.conforms, str(report)
    assert sum(verdict.status != "absent" for verdict in report) == len(list(report)), str(report)


@pytest.mark.exhaustive
def test_a_whole_model_gets_numbers() -> None:
    method = "model.encode-decode-is-forward"
    slugs = ["model.formula", "model.parameter-count", method]
    report = attentest.check(str(WILD / "stacks.py:Transformer"), clauses=slugs, anyway=True)
    assert [one.status for one in report if one.clause != method] == ["pass", "pass"]
    assert "only its call was read" in report[method].message


@pytest.mark.parametrize(("name", "component", "said"), MASKS)
def test_functions_that_make_masks_conform(name: str, component: str, said: str) -> None:
    report = attentest.check(str(WILD / f"masks.py:{name}"), component)
    assert said in "\n".join(report.inferred), report.inferred
    assert report.conforms, str(report)


def test_words_of_a_function_that_makes_masks_may_follow_in_a_sentence_of_their_own() -> None:
    def causal_mask(length):
        """Return a square; True means that a key may be attended."""
        return torch.ones(length, length).tril(-1).bool()[None, None]

    slugs = ["masks.causal-keeps-diagonal"]
    assert not attentest.check(causal_mask, clauses=slugs).conforms


@pytest.mark.proof
@share(5)
@pytest.mark.parametrize(("name", "clause"), BROKEN)
def test_a_mistake_is_not_taken_for_a_convention(name: str, clause: str) -> None:
    backend = attentest.adapted(str(WILD / f"broken.py:{name}"), clauses()[clause].component)
    verdict = judge(Bench.for_status(backend), clause)
    assert verdict.status in ("violation", "error"), verdict


@share(2)
@pytest.mark.parametrize(("name", "word", "said", "shown", "clause"), CONTRARY)
def test_words_that_the_numbers_contradict_are_a_question(
    name: str, word: str, said: str, shown: str, clause: str
) -> None:
    target, component = str(WILD / f"broken.py:{name}"), clauses()[clause].component
    asked = refused(target, component=component)
    assert f"--set {word}={said} or --set {word}={shown}" in asked
    for answer, statuses in ((said, ("violation", "error")), (shown, ("pass",))):
        backend = attentest.adapted(target, component, **{word: answer})  # type: ignore[arg-type]
        verdict = judge(Bench.for_status(backend), clause)
        assert verdict.status in statuses, verdict


def attention_of_infinities(q, k, v, attn_mask=None):
    scores = q @ k.mT * q.shape[-1] ** -0.5
    if attn_mask is not None:
        scores = scores.masked_fill(attn_mask.isneginf(), -torch.inf)
    return scores.softmax(-1) @ v


def attention_with_a_bias(q, k, v, attention_mask=None):
    scores = q @ k.mT * q.shape[-1] ** -0.5
    if attention_mask is not None:
        scores = scores + attention_mask
    return scores.softmax(-1) @ v


@pytest.mark.parametrize("call", [attention_of_infinities, attention_with_a_bias])
def test_mask_that_is_added_is_recognised_with_finite_and_infinite_entries(
    call: Callable[..., torch.Tensor],
) -> None:
    report = attentest.check(call, "attention", clauses=["attention.masked-keys-ignored"])
    assert "added to the scores" in "\n".join(report.inferred)
    assert report.conforms, str(report)


def test_optional_argument_that_may_be_a_mask_is_named() -> None:
    def attention(q, k, v, seen=None, scale=None):
        return (q @ k.mT * (scale or q.shape[-1] ** -0.5)).softmax(-1) @ v

    (said,) = [line for line in attentest.adapted(attention).understood if "mask" in line]  # type: ignore[attr-defined]
    assert said == (
        "no argument was taken for a mask: seen not given; add --argument mask=seen if it is"
    )


def refused(target: str | object, **settled: object) -> str:
    with pytest.raises(Unclear) as failure:
        attentest.adapted(target, **settled)  # type: ignore[arg-type]
    text = str(failure.value)
    assert "\n" not in text
    assert len(text) < 1000  # what a worker passes on
    return text


def mix(a, b, c):
    return a + b + c


class Unknown(torch.nn.Module):
    def __init__(self, d_model, flavour):
        super().__init__()

    def forward(self, x):
        return x


def test_a_name_that_says_nothing_asks_for_the_component() -> None:
    assert "Say so with --as COMPONENT" in refused(mix)


class BertLayerNorm(torch.nn.LayerNorm):
    """Its name holds the name of a component."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__(hidden_size)


class ScaleNormLayer(BertLayerNorm):
    """Its name holds one too, and it computes something else."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * x / x.abs().amax(-1, keepdim=True) + self.bias


def test_a_name_that_holds_that_of_a_component_is_a_guess_which_numbers_confirm() -> None:
    report = attentest.check(BertLayerNorm, clauses=["layer_norm.formula"])
    said = " ".join(str(report).split())
    assert "is judged as layer_norm (by a part of its name, and by its numbers)" in said
    assert report.conforms, str(report)


@pytest.mark.proof
def test_a_guess_that_numbers_do_not_confirm_is_a_question() -> None:
    said = refused(ScaleNormLayer)
    assert "A part of the name 'ScaleNormLayer' says that it is layer_norm" in said
    # With a component that the user names it is judged: its one map is certain.
    assert attentest.adapted(ScaleNormLayer, "layer_norm")


def test_a_function_of_c_is_read_by_its_docstring() -> None:
    call = torch.nn.functional.scaled_dot_product_attention
    slugs = ["attention.formula", "attention.masked-keys-ignored"]
    report = attentest.check(call, clauses=slugs)
    assert "query=query, key=key, value=value, mask=attn_mask" in "\n".join(report.inferred)
    assert report.conforms, str(report)
    assert report.compared == 2


def test_arguments_that_say_nothing_are_asked_for() -> None:
    message = refused(mix, component="attention")
    assert "--argument query=a --argument key=b --argument value=c" in message
    assert "of_function(lambda query, key, value, mask: mix(..)" in message
    roles = {"query": "a", "key": "b", "value": "c"}
    backend = attentest.adapted(mix, "attention", arguments=roles)
    assert "query=a, key=b, value=c" in "\n".join(backend.understood)  # type: ignore[attr-defined]
    assert "no argument 'd'" in refused(mix, component="attention", arguments={"query": "d"})
    assert "no argument 'd'" in refused(mix, component="attention", given={"d": 1})


def test_a_constructor_that_needs_more_is_asked_for() -> None:
    message = refused(Unknown, component="layer_norm")
    assert "none gives the numbers of the reference: --give flavour=False" in message
    assert attentest.adapted(Unknown, "layer_norm", given={"flavour": 3}, anyway=True)


def test_code_that_no_layout_fits_says_what_every_call_raised() -> None:
    def attention(q, k, v):
        raise RuntimeError("out of luck")

    message = refused(attention)
    assert "could not be called as attention" in message
    line = attention.__code__.co_firstlineno + 1
    assert message.count(f"out of luck (at test_adapt.py:{line})") == 1


def test_a_file_or_an_object_that_is_not_there_is_told() -> None:
    with pytest.raises(LoadFailure, match="did you mean attend"):
        attentest.adapted(str(WILD / "attention.py:atend"))
    with pytest.raises(LoadFailure, match=r"there is no file .*nowhere\.py"):
        attentest.adapted("nowhere.py:attention")
    assert "Say which of them" in refused(str(WILD / "attention.py"))


def test_a_word_that_is_none_is_refused() -> None:
    with pytest.raises(UnknownName, match="blocks"):
        attentest.adapted(mix, "attention", mask="block")
    with pytest.raises(UnknownName, match="attention"):
        attentest.adapted(mix, "atention")
    with pytest.raises(UnknownName, match="norm_placement"):
        attentest.adapted(mix, "attention", choices={"norm_placemen": "pre"})
    with pytest.raises(ValueError, match="post, pre"):
        attentest.adapted(mix, "attention", choices={"norm_placement": "before"})


def test_user_settings_take_precedence() -> None:
    target = str(WILD / "attention.py:attention")
    report = attentest.check(target, mask="blocks", clauses=["attention.formula"])
    assert "mask: True blocks" in "\n".join(report.inferred)
    assert "as you say; a probing call does not show it" in "\n".join(report.inferred)
    assert report["attention.formula"].status == "violation"
    part = str(WILD / "parts.py:SublayerConnection")
    report = attentest.check(part, choices={"norm_placement": "post"})
    assert "norm_placement: post, as you say" in report.inferred
    assert not report.conforms


def test_a_convention_that_no_call_accepts_is_still_judged_by() -> None:
    def attention(q, k, v, mask=None):
        if mask is not None:
            raise RuntimeError("no masks today")
        return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v

    for meaning in ("keep", "blocks", "additive"):
        slugs = ["attention.one-key"]
        report = attentest.check(attention, mask=meaning, clauses=slugs)
        assert "does not show it" in "\n".join(report.inferred)
        assert report[slugs[0]].status == "error"


@pytest.mark.proof
def test_live_objects_are_judged() -> None:
    from attention import ScaledDotProductAttention, attention
    from multi_head_attention import CausalSelfAttention, MultiHeadedAttention

    slugs = ["attention.formula", "multi_head_attention.formula"]
    for thing in (attention, ScaledDotProductAttention, ScaledDotProductAttention(0.1)):
        assert attentest.check(thing, clauses=slugs[:1])["attention.formula"].status == "pass"
    for thing in (MultiHeadedAttention, MultiHeadedAttention(2, 8)):
        report = attentest.check(thing, clauses=slugs[1:])
        assert report["multi_head_attention.formula"].status == "pass", str(report)
    assert "an instance is judged as its class" in report.text(full=True)
    state = torch.get_rng_state()
    attentest.adapted(CausalSelfAttention)
    assert torch.equal(state, torch.get_rng_state())


def test_an_instance_that_its_class_does_not_build_again_is_refused() -> None:
    from multi_head_attention import MHA

    assert "bias" in refused(MHA(8, 2, bias=False))


def test_the_witness_builds_what_was_judged() -> None:
    target = str(WILD / "broken.py:attention_without_scale")
    report = attentest.check(target, "attention", clauses=["attention.formula"])
    counterexample = report["attention.formula"].counterexample
    assert counterexample is not None
    exec(counterexample.code, {})


@pytest.mark.parametrize(
    ("component", "words"),
    [
        ("cached_decoding", "a recipe of three functions"),
        ("grouped_optimiser", "of_function"),
        ("padded_batch", "lambda tokens, lengths"),
        ("packed_batch", "of_function"),
    ],
)
def test_component_that_no_signature_shows_is_a_question(component: str, words: str) -> None:
    class Cache:
        def update(self, keys, values):
            return keys, values

    with pytest.raises(Unclear, match=words):
        attentest.adapted(Cache, component=component)
