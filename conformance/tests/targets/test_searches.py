"""Functions that decode greedily are called with a scripted model, as their authors wrote them."""

import pytest
import torch
from folders import SUPPORT

import attentest
from attentest.interfaces import python
from attentest.judging.bench import Bench
from attentest.targets.adapt.reading import Unclear
from attentest.targets.searches.stand_in import StandIn
from attentest_spec import Sizes

FILE = SUPPORT / "wild" / "searches.py"
SOME = [
    f"decoding.{one}"
    for one in ("greedy-formula", "stop-at-end", "exact-length", "any-ids", "batch-independence")
]


def judged(name: str, **settings: object) -> attentest.Report:
    return attentest.check(f"{FILE}:{name}", "greedy_decoding", clauses=SOME, **settings)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sequence_first", ["sequence first", "end as the global EOS_IDX"]),
        ("whole_batch", ["assumed that its length counts new tokens alone", "mode: evaluation"]),
        ("list_of_ids", ["its result does not contain the given tokens"]),
    ],
)
def test_correct_function_conforms_and_its_call_is_reported(name: str, said: list[str]) -> None:
    report = judged(name)
    assert all(one in "\n".join(report.inferred) for one in said)
    assert report.conforms, str(report)


def test_function_without_an_end_token_is_a_declared_deviation() -> None:
    report = judged("one_sentence")
    assert "it decodes one sequence at a time, batch first" in "\n".join(report.inferred)
    assert report["decoding.stop-at-end"].status == "deviation"


@pytest.mark.proof
def test_mistake_is_a_violation_with_its_likely_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python, "Bench", Bench)
    report = attentest.check(
        f"{FILE}:first_position", "greedy_decoding", clauses=["decoding.greedy-formula"]
    )
    verdict = report["decoding.greedy-formula"]
    assert verdict.status == "violation"
    assert "decoding.first-position-read" in str(verdict.diagnosis)
    assert "assumed that it is called so" in "\n".join(report.inferred)


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("stops_at_three", "stops at the token 3, and no argument names it"),
        ("with_tokenizer", "what to give for tokenizer"),
    ],
)
def test_function_that_cannot_be_called_is_a_question(name: str, asked: str) -> None:
    with pytest.raises(Unclear, match=asked):
        attentest.adapted(f"{FILE}:{name}", component="greedy_decoding")


def test_class_without_a_method_that_decodes_is_a_question() -> None:
    class Beams:
        pass

    for component in ("greedy_decoding", "beam_search", "sampling"):
        with pytest.raises(Unclear, match=r"backend with a recipe"):
            attentest.adapted(Beams, component=component)


def test_adapter_of_a_greedy_function_holds_its_arguments_and_options() -> None:
    written = attentest.adapted(f"{FILE}:whole_batch", component="greedy_decoding").written()
    names: dict[str, object] = {}
    exec(compile(written, "adapter.py", "exec"), names)
    assert "'length': 'max_new_tokens'" in written
    assert dict(names["backend"].choices)["decoding_mode"] == "evaluation"  # type: ignore[attr-defined]


@pytest.mark.parametrize("sequence_first", [False, True])
def test_stand_in_recognises_its_tensors_by_content(sequence_first: bool) -> None:
    model = StandIn(Sizes(target_vocabulary=5), sequence_first=sequence_first).eval()
    begin = torch.tensor([[1], [1]])
    scores = torch.randn(2, 3, 5, 5, dtype=torch.float64)
    source = model.play(scores, begin)
    target, mask = model.turned(begin), torch.ones(1, 1, 1)
    memory = model.encode(source, mask)
    answers = [
        model.decode(memory, mask, target, mask),
        model.decode(target, memory),
        model.decode(tgt=target, enc_out=memory, src=source),
        model(source, target),
        model.generator(model(trg=target, src=source)),
    ]
    for answer in answers:
        torch.testing.assert_close(model.turned(answer)[:, 0], scores[:, 0, 1])
    with pytest.raises(AttributeError):
        _ = model.nothing_of_the_kind


def greedy_decode(model, src, src_mask, max_len, start_symbol, order=torch.tril):
    """Decode as the Annotated Transformer does; `order` makes the mask of the target."""
    memory = model.encode(src, src_mask)
    ys = torch.full((src.size(0), 1), start_symbol, dtype=torch.long)
    for _ in range(max_len - 1):
        mask = order(torch.ones(1, ys.size(1), ys.size(1), dtype=torch.bool))
        out = model.decode(memory, src_mask, ys, mask)
        ys = torch.cat([ys, model.generator(out[:, -1]).argmax(-1, keepdim=True)], 1)
    return ys


def greedy_decode_backward(model, src, src_mask, max_len, start_symbol):
    return greedy_decode(model, src, src_mask, max_len, start_symbol, torch.triu)


def greedy_decode_blocked(model, src, src_mask, max_len, start_symbol):
    def order(whole):
        return torch.zeros(whole.shape).masked_fill(whole.triu(1), -torch.inf)

    return greedy_decode(model, src, src_mask, max_len, start_symbol, order)


@pytest.mark.parametrize("one", [greedy_decode, greedy_decode_blocked])
def test_causal_masks_of_every_convention_are_accepted(one) -> None:
    report = attentest.check(one, "greedy_decoding", clauses=["decoding.greedy-formula"])
    assert report.conforms, str(report)


def test_a_mask_that_hides_earlier_tokens_is_a_question() -> None:
    with pytest.raises(Unclear, match="hides a token from itself"):
        attentest.adapted(greedy_decode_backward, "greedy_decoding")
