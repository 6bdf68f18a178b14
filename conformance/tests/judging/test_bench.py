"""The precision that a backend is judged in."""

import pytest
from miniatures import Miniature, sound

from attentest.analysis.undeclared import measured_for
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.plan import Plan
from attentest.results.run import BackendRun, Description
from attentest.results.wording import summary
from attentest_spec import COMPONENTS, Choices, Limits


def single(name: str = "single") -> Miniature:
    """Return a backend that claims no float64."""
    backend = Miniature(name, sound)
    backend.limits = Limits(precisions=("bfloat16", "float32"))
    return backend


@pytest.mark.parametrize(
    ("asked", "judged"), [("float64", "float32"), ("float32", "float32"), ("float16", "float16")]
)
def test_one_without_float64_is_judged_in_the_finest_that_it_claims(
    asked: str, judged: str
) -> None:
    assert Bench(single(), precision=asked).computed_in == judged
    assert Bench(Miniature("double", sound), precision=asked).computed_in == asked


@pytest.mark.parametrize(
    ("asked", "status"), [("float64", "pass"), ("bfloat16", "pass"), ("float16", "absent")]
)
def test_another_precision_that_is_asked_for_is_kept(asked: str, status: str) -> None:
    def rounded(*inputs: object) -> object:
        return tuple(one.astype(inputs[0].dtype) for one in sound(*inputs))  # type: ignore[attr-defined]

    backend = single()
    backend.function = rounded
    assert judge(Bench(backend, precision=asked), "attention.one-key").status == status


@pytest.mark.parametrize(
    ("claimed", "told"), [(["bfloat16", "float32"], " in float32,"), (["float64", "float32"], ",")]
)
def test_the_summary_says_so(claimed: list[str], told: str) -> None:
    result = BackendRun("one", Description(limits={"precisions": claimed}))
    assert summary(result, Plan(())).startswith(f"one: 0 of 0 judged clauses conform{told}")
    assert " in float32" not in summary(result, Plan((), precision="float32"))


MEASURED = (
    *("layer_norm", "positional_encoding", "padded_batch", "loss", "rotary"),
    "mixture_of_experts",
)


def test_measured_choices_are_those_that_a_component_may_depend_on() -> None:
    paper, turned = Choices(), Choices(attention_rotary="query-and-key")
    assert measured_for("", paper) == MEASURED
    for part in MEASURED:
        assert part in measured_for(part, paper)
    assert {measured_for(one, paper) for one in ("attention", "feed_forward", "rms_norm")} == {
        ("layer_norm",)
    }
    assert measured_for("model", paper) == ("layer_norm", "positional_encoding")
    assert measured_for("model", turned) == ("layer_norm", "positional_encoding", "rotary")
    for component in ("multi_head_attention", "causal_layer", "language_model"):
        assert "rotary" in measured_for(component, paper)
    assert all(measured_for(one, turned) for one in COMPONENTS)


def test_choices_are_measured_once_for_all_clauses_that_depend_on_the_same() -> None:
    bench = Bench(Miniature("one", sound))
    assert bench.choices("attention") is bench.choices("feed_forward")
    assert bench.choices() == bench.choices("model")


def test_bench_for_status_judges_alike_and_calls_a_failing_example_once() -> None:
    calls: list[int] = []

    def halved(*inputs: object) -> object:
        calls.append(1)
        return tuple(one / 2 for one in sound(*inputs))  # type: ignore[attr-defined]

    found, numbers = {}, {}
    for name, bench in {"shown": Bench, "status": Bench.for_status}.items():
        backend = Miniature("halved", halved)
        calls.clear()
        settings = {} if name == "status" else {"shrink": False, "diagnose": False}
        found[name] = judge(bench(backend, **settings), "attention.rows-sum-to-one")
        numbers[name] = len(calls)
    shown, status = found["shown"], found["status"]
    assert (shown.status, shown.message) == (status.status, status.message)
    assert status.status == "violation"
    assert shown.counterexample
    assert status.counterexample is None
    assert numbers["shown"] == 2 * numbers["status"]


def test_bench_for_status_reports_an_exception_with_its_place() -> None:
    def refuse(*inputs: object) -> object:
        raise RuntimeError("no")

    benches = (Bench(Miniature("refuses", refuse), shrink=False, diagnose=False),)
    benches += (Bench.for_status(Miniature("refuses", refuse)),)
    full, status = (judge(one, "attention.formula") for one in benches)
    assert full.status == status.status == "error"
    assert (full.message, full.where) == (status.message, status.where)


def test_bench_for_status_judges_what_fails_at_random() -> None:
    answers = iter([0.5, *[1.0] * 1000])

    def once(*inputs: object) -> object:
        return tuple(one * next(answers) for one in sound(*inputs))  # type: ignore[attr-defined]

    bench = Bench.for_status(Miniature("once", once))
    assert judge(bench, "attention.formula").status == "violation"
