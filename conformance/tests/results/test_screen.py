"""The screen of one piece of code: what it says, and that it fits the terminal."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from attentest.results import reproductions
from attentest.results.branches import Branch
from attentest.results.causes import causes
from attentest.results.plan import Plan
from attentest.results.run import BackendRun, Description
from attentest.results.screen import Screen
from attentest.results.verdict import Counterexample, LikelyCause, Location, Verdict

SCALE = LikelyCause(
    "fault",
    ("attention.scale-missing",),
    "the fault attention.scale-missing: Scores are not divided by the root of the key width.",
    2e-16,
)
SECOND = LikelyCause("fault", ("attention.other",), "the fault attention.other: Other.", 0.0, 3)
ROWS = Counterexample(
    ("build attention with d_model=2, heads=1 in float64", "load 8 parameters", "call it with ()"),
    "import math\nprint(math.pi)",
    "[[1. 2. 3.]\n [4. 5. 6.]\n [7. 8. 9.]\n [0. 0. 0.]]",
    "[[1. 2. 3.]\n [4. 5. 0.]\n [7. 0. 9.]\n [0. 1. 0.]]",
)
LINE = Location(
    "att.py",
    14,
    "        scores = q @ k.transpose(-2, -1)",
    "scores",
    "scores / sqrt(d_k) = 1.41",
    "scores are not divided",
    confirmed=True,
)
SLUGS = (
    "attention.formula",
    "attention.cross-lengths",
    "attention.mask-shapes",
    "attention.value-width",
    "attention.one-key",
    "attention.key-order",
)


def failing(**rest: object) -> list[Verdict]:
    """Return violations with one likely cause."""
    message = "The output differs by 0.029 at (0, 0, 0): found -0.78853865, expected -0.759513562."
    values: dict[str, object] = {
        "message": message,
        "counterexample": ROWS,
        "diagnosis": (SCALE, SECOND),
    } | rest
    return [Verdict("att.py:attend", slug, "violation", **values) for slug in SLUGS]  # type: ignore[arg-type]


def screen(verdicts: list[Verdict], shown: Screen | None = None, **about: object) -> str:
    """Return the screen of a backend with `verdicts`."""
    description = Description(**about)  # type: ignore[arg-type]
    run = BackendRun("att.py:attend", description, verdicts)
    return (shown or Screen()).report(run, Plan(SLUGS))


def test_block_begins_with_the_line_and_the_answer_repeats_it() -> None:
    lines = screen(failing(location=LINE)).splitlines()
    assert lines[0] == ("1  att.py:14  scores are not divided; expected scores / sqrt(d_k) = 1.41")
    assert lines[1] == "   14 | scores = q @ k.transpose(-2, -1)"
    assert "confirmed" in lines[2]
    end = lines[lines.index("") + 1 :]
    assert end[0] == "att.py:attend does not conform: 6 clauses broken by 1 cause"
    assert "likely cause: Scores are not divided by the root of the key width." in end
    assert "first step that differs: scores, at att.py:14" in end
    assert any(one.startswith("next: ") for one in end)
    assert len(end) <= 12


def test_value_that_no_known_mistake_computes_is_a_finding_and_no_likely_cause() -> None:
    text = screen(failing(location=replace(LINE, computed=""), diagnosis=()))
    assert text.startswith("1  att.py:14  another value; expected scores / sqrt(d_k) = 1.41")
    assert "first finding: another value; expected" in text
    assert "likely cause" not in text


def test_block_without_a_line_begins_with_the_likely_cause_alone() -> None:
    text = screen(failing())
    assert text.startswith("1  likely cause: Scores are not divided by the root of the key width.")
    assert "attention.other" not in text
    assert "attention.other" in screen(failing(), Screen(full=True))


def test_nearest_mistakes_are_listed_where_none_gives_all_results() -> None:
    text = screen(failing(diagnosis=(SECOND,)))
    assert text.startswith("1  The output differs by 0.029")
    assert "the nearest: attention.other: 3 results not reproduced" in " ".join(text.split())


def test_search_for_a_cause_that_was_ended_is_reported() -> None:
    note = "the likely cause was not found: no answer within 120 seconds"
    text = " ".join(screen(failing(diagnosis=(), notes=(note,))).split())
    assert note in text
    assert "the likely cause was not found" not in " ".join(screen(failing()).split())


def test_arrays_are_cut_to_rows_that_differ() -> None:
    rows = [one.split() for one in screen(failing()).splitlines() if one.startswith("     ")]
    assert rows == [
        ["computed", "4.", "5.", "6."],
        ["expected", "4.", "5.", "0."],
        ["computed", "7.", "8.", "9."],
        ["expected", "7.", "0.", "9."],
    ]


@pytest.mark.parametrize("width", [80, 160])
def test_one_mistake_fits_on_a_screen_and_no_word_is_cut(width: int) -> None:
    text = screen(
        failing(location=LINE),
        Screen(width),
        inferred=("attend is judged as attention",),
        summary="attend called (q, k, v, mask); True may be attended",
        assumed=("assumed mask_fill=-1e4, as measured: " + "if you meant another " * 5,),
    )
    lines = text.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= width
    also = next(one for one in lines if "also breaks" in one)
    assert also.startswith("   also breaks 5 clauses: cross-lengths, mask-shapes")
    assert {word.rstrip(",") for word in also.split(": ")[1].split()} <= {
        *(slug.partition(".")[2] for slug in SLUGS),
        "..",
    }


def test_warnings_of_a_cause_are_not_among_the_clauses_that_it_breaks() -> None:
    mild = replace(failing()[-1], status="warning")
    assert "also breaks 4 clauses" in screen([*failing()[:-1], mild])


def test_screen_of_the_longest_texts_fits_on_forty_lines() -> None:
    long = "several words that are said at length " * 12
    location = replace(
        LINE, file=f"{'folder/' * 20}att.py", code=long, expected=long, computed=long
    )
    example = replace(ROWS, steps=(long,))
    likely = replace(SCALE, text=f"the fault attention.scale-missing: {long}")
    broken = failing(message=long, location=location, counterexample=example, diagnosis=(likely,))
    slow = [
        Verdict("att.py:attend", slug, "warning", f"{number} {long}")
        for number, slug in enumerate(("model.long", "model.too-long-input-named"))
    ]
    text = screen(
        [*broken, *slow],
        inferred=("attend is judged as attention",),
        summary=long,
        assumed=tuple(f"assumed tying={number}, as measured: {long}" for number in range(9)),
    )
    assert len(text.splitlines()) <= 40


def test_branches_and_long_places_fit_on_a_screen_by_fewer_assumptions() -> None:
    target = f"{'a_folder_of_some_package/' * 2}attention.py:SelfAttention"
    ends = "as measured: if you meant another, this is a mistake, and --strict reports it"
    run = BackendRun(
        target,
        Description(
            inferred=("SelfAttention is judged as attention",),
            summary="SelfAttention(n_heads, d_embed) called (query=x); not given: causal_mask; "
            "nothing that depends on it is judged; 4 parameters by name",
            assumed=tuple(f"assumed choice-{one}=option, {ends}" for one in "abcd"),
        ),
        failing(
            location=replace(LINE, file=target.partition(":")[0], computed="several words " * 12),
            message="The output differs by 0.029 at (0, 0, 0): found -0.78853865. " * 3,
        ),
        branches=(Branch(target.partition(":")[0], 28, 29, "causal_mask"),),
    )
    written = {("att.py:attend", "attention.formula"): Path("/folder" * 14) / "attention.py"}
    lines = Screen(written=written).report(run, Plan(SLUGS)).splitlines()
    assert len(lines) <= 40
    assert any("choice-a" in one for one in lines)
    assert any(one.startswith("and 3 assumptions more") for one in lines)


def test_whole_model_with_a_line_and_two_options_fits_on_a_screen() -> None:
    both = LikelyCause(
        "option",
        ("embedding_scale=none", "output=logits"),
        "the option none of the choice embedding_scale (the plain table row) together with the "
        "option logits of the choice output (the linear map alone)",
    )
    steps = "model with d_model=3, heads=1, d_ff=5, layers=1, source_vocabulary=13, max_length=8"
    example = replace(ROWS, steps=(f"build {steps}, source_pad=3, target_pad=3 in float64",))
    target = f"models/{'long' * 9}.py:Transformer"
    verdicts = [
        Verdict(
            target,
            slug,
            "violation",
            "The output differs by 2.84 at (0, 3): found -2.84271927, expected 0.00202501954; the "
            "tolerance is 8.8e-15.",
            counterexample=example,
            diagnosis=(both,),
            location=replace(LINE, code="out = torch.bmm((dot + hidden).softmax(1), values)" * 2),
        )
        for slug in ("model.formula", "model.causality", "model.embedding-norm", "model.tying")
    ]
    verdicts += [Verdict(target, "model.out-of-range-named", "warning", "It is not named.")]
    verdicts += [Verdict(target, "model.impossible-sizes-named", "warning", "It is not named.")]
    ends = "as measured: if you meant all-three (the paper's), this is a mistake, and --strict says"
    run = BackendRun(
        target,
        Description(
            inferred=("Transformer is judged as model",),
            summary="Transformer called (source=src, target=tgt); it makes its masks itself; 32 "
            "parameters by name",
            assumed=tuple(f"assumed projection_bias=option-{one}, {ends}" for one in range(6)),
        ),
        verdicts,
    )
    lines = Screen().report(run, Plan(tuple(one.clause for one in verdicts))).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80


def test_warnings_beside_a_failure_are_one_block() -> None:
    slugs = "model.out-of-range-named", "model.too-long-input-named"
    slow = [
        Verdict("att.py:attend", slug, "warning", f"It is not named, {slug}.") for slug in slugs
    ]
    (block,) = [one for one in screen([*failing(), *slow]).split("\n\n") if one[0] == "2"]
    first, second = block.splitlines()
    assert first.startswith("2-3  warning: does not follow model.out-of-range-named,")
    assert screen(slow).count("warning: ") == 2
    assert second.split() == ["model.too-long-input-named"]


def test_clauses_that_may_follow_from_a_cause_are_one_block() -> None:
    gradients = [
        Verdict("att.py:Layer", slug, "violation", f"The gradient of {own} is 1; 2 is expected.")
        for slug, own in (("encoder.separate-norms", "gain"), ("encoder.gradient", "bias"))
    ]
    blocks = screen([*failing(), *gradients]).split("\n\n")
    (block,) = [" ".join(one.split()) for one in blocks if one.startswith("2-3")]
    assert block.startswith("2-3 without a line or a known mistake of their own: encoder.")
    assert block.endswith("they may follow from what comes before: mend it, and check again")
    alone = screen(gradients)
    assert "may follow" not in alone
    assert "The gradient of gain is 1" in alone


def test_words_are_those_of_the_example_that_is_shown() -> None:
    other = replace(LINE, expected="scores / sqrt(d_k) = 2.83")
    first = failing(location=replace(LINE, confirmed=False))[:1]
    assert "scores / sqrt(d_k) = 1.41" in screen([*first, *failing(location=other)[1:]])


def test_counts_are_folded_before_the_first_number_that_does_not_fit() -> None:
    verdicts = [Verdict("m" * 30, slug, "pass") for slug in SLUGS]
    run = BackendRun("m" * 30, Description(), verdicts)
    first, *rest = Screen(75).counts(run, Plan(SLUGS))
    assert first == f"{'m' * 30}: 6 of 6 judged clauses conform, of 6 in all"
    assert rest[0].startswith("  (6 pass)")


def test_sure_inference_is_one_line_and_an_assumption_another() -> None:
    about = {"inferred": ("one", "two"), "summary": "attend called (q, k, v)"}
    passing = [Verdict("att.py:attend", slug, "pass") for slug in SLUGS]
    assert screen(passing, **about).startswith("understood: attend called (q, k, v)\n\n")
    doubtful = screen(passing, assumed=("assumed a=b",), **about)
    assert doubtful.startswith("understood: attend called (q, k, v)\nassumed a=b\n\n")


def test_assumptions_of_several_pieces_of_code_say_whose_they_are() -> None:
    denied = "assumed e=1, as measured, though the argument eps is 2"
    read = [
        Description(inferred=("one",), summary="N called (x)", assumed=(one, "assumed c=d"))
        for one in (denied, "Own is b")
    ]
    said = Screen().understood(*read, names=["Norm", "Own"]).splitlines()
    assert said[2:] == [f"Norm: {denied}", "Norm, Own: assumed c=d", "Own is b"]


TAIL = "as measured: if you meant {} (the paper's), this is a mistake, and --strict reports it"


def test_measured_choices_are_one_sentence_the_likeliest_mistake_first() -> None:
    measured = (
        f"assumed output=logits, {TAIL.format('probabilities')}",
        f"assumed embedding_scale=none, {TAIL.format('sqrt-d')}",
        f"assumed final_norm=present, {TAIL.format('none')}",
    )
    one = Description(inferred=("one",), summary="N called (x)", assumed=(*measured, "assumed c"))
    (_, *rows) = Screen().understood(one).splitlines()
    assert rows[-1] == "assumed c"
    assert " ".join(row.strip() for row in rows[:-1]) == (
        "assumed, as measured, and a mistake if you meant the paper's (in brackets), which "
        "--strict reports: embedding_scale=none (sqrt-d), output=logits (probabilities), "
        "final_norm=present (none)"
    )
    alone = Description(inferred=("one",), summary="N called (x)", assumed=measured[:1])
    assert measured[0] in " ".join(Screen().understood(alone).split())


def test_another_option_of_one_of_several_pieces_of_code_has_its_name() -> None:
    first, second = (
        Description(
            inferred=("one",),
            summary="N called (x)",
            assumed=(
                f"assumed activation={one}, {TAIL.format('relu')}",
                f"assumed feed_forward_bias=none, {TAIL.format('present')}",
            ),
        )
        for one in ("silu", "gelu")
    )
    said = " ".join(Screen().understood(first, second, names=["One", "Two"]).split())
    assert "activation=silu in One (relu), feed_forward_bias=none (present)" in said
    assert "activation=gelu in Two (relu)" in said


def test_call_of_each_of_many_pieces_of_code_is_one_row() -> None:
    one = Description(inferred=("one",), summary=f"N called ({'x, ' * 40})")
    rows = Screen().understood(*[one] * 3).splitlines()
    assert len(rows) == 3
    assert all(row.endswith("..") for row in rows)
    assert len(Screen().understood(one, one).splitlines()) > 2


def test_argument_that_is_not_given_is_seen_among_many_calls() -> None:
    missing = "not given: memory_keep; nothing that depends on it is judged"
    call = f"Layer({'width, ' * 12}) called (x); {missing}"
    one = Description(inferred=("one",), summary=call)
    said = Screen().understood(*[one] * 3)
    assert said.count("memory_keep") == 3
    assert "Layer called (x)" in said


def test_calls_of_code_that_conforms_are_counted_beside_code_that_does_not() -> None:
    read = [Description(inferred=("one",), summary=f"{name} called (x)") for name in "MNO"]
    said = Screen().understood(*read, names=[*"MNO"], wrong=[False, True, False])
    assert said == "understood: N called (x)\nunderstood: 2 calls more, listed by --full"
    assert len(Screen().understood(*read, wrong=[False] * 3).splitlines()) == 3
    assert len(Screen().understood(*read[:2], wrong=[True, False]).splitlines()) == 2


def test_more_assumptions_are_listed_of_several_pieces_of_code() -> None:
    read = [Description(inferred=("one",), assumed=tuple("abcd"), summary="N called (x)")]
    assert Screen().understood(*read).endswith("and 2 assumptions more, listed by --full")
    assert Screen().understood(*read, *read).splitlines()[2:] == [*"abcd"]


def test_choices_of_a_whole_model_are_listed_before_those_of_its_parts() -> None:
    about = {"inferred": ("one", "two"), "summary": "attend called (q, k, v)"}
    passing = [Verdict("att.py:attend", slug, "pass") for slug in SLUGS]
    whole = "assumed the choices of gemma with embedding_scale=none, as measured"
    shown = screen(passing, assumed=("a is b", "c is d", "e is f", whole), **about)
    assert shown.startswith(f"understood: attend called (q, k, v)\n{whole}\na is b\n")


def test_assumption_is_next_to_the_violation_that_depends_on_it() -> None:
    assumed = ("assumed activation=gelu, as measured", "assumed tying=none, as measured")
    verdict = Verdict("mine", "feed_forward.activation", "violation", "It differs.")
    run = BackendRun("mine", Description(assumed=assumed), [verdict])
    (block,) = Screen().paragraphs(run)
    assert "assumed activation=gelu" in block
    assert "tying" not in block


def test_whole_reproduction_is_in_a_file_that_runs(tmp_path: Path) -> None:
    written = reproductions.write(causes(failing(location=LINE)), tmp_path / "new")
    (path,) = written.values()
    assert path.name == "attention-formula.py"
    assert "# att.py:14  scores are not divided" in path.read_text()
    ended = subprocess.run([sys.executable, "-S", path], capture_output=True, text=True, check=True)
    assert ended.stdout == "3.141592653589793\n"
    assert f"reproduction: {path}" in screen(failing(), Screen(500, written=written))


def test_files_are_never_overwritten(tmp_path: Path) -> None:
    mine = tmp_path / "attention-formula.py"
    mine.write_text("mine")
    (path,) = reproductions.write(causes(failing()), tmp_path).values()
    assert path.name == "attention-formula-2.py"
    assert mine.read_text() == "mine"


def test_example_that_cannot_be_written_as_code_has_no_file(tmp_path: Path) -> None:
    example = Counterexample((), "# too large to paste; see the steps")
    assert not reproductions.write(causes(failing(counterexample=example)), tmp_path)
