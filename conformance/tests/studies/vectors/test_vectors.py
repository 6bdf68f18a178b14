"""Test vectors: what is written, how it is read, and what it finds."""

import json
import shutil
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from folders import DOCS
from jsonschema import Draft202012Validator
from markdown_it import MarkdownIt
from proof import share
from safetensors.numpy import load_file

from attentest.faults.reference_models import Plain, reference_backend
from attentest.interfaces.cli.main import main
from attentest.results.output import Occupied
from attentest.studies import vectors
from attentest.studies.vectors.cases import Case, Expected, cases, options
from attentest.studies.vectors.recipes import PARTS, POISON
from attentest_spec import CHOICES, COMPONENTS, PAPER, Choices, Sizes, UnknownName
from attentest_spec.clauses import clauses
from attentest_spec.precision import dtype
from attentest_spec.setting import Array

JAVASCRIPT = DOCS / "examples" / "javascript"


@pytest.fixture(scope="module")
def everything() -> list[Case]:
    return list(cases(PARTS, PAPER, 0, 1))


@pytest.fixture(scope="module")
def folder(everything: list[Case], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("vectors") / "out", everything)


@pytest.fixture(scope="module")
def ported(everything: list[Case], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return vectors of the components that the port has: those of all take longer to read."""
    return written(tmp_path_factory.mktemp("vectors") / "out", everything, *PORTED)


PORTED = ("attention", "multi_head_attention", "layer_norm", "positional_encoding")


def written(out: Path, everything: list[Case], *components: str) -> Path:
    """Write the vectors of `components`, of all where none is named."""

    def drawn(components: Collection[str], *_: object) -> list[Case]:
        return [one for one in everything if one.recipe.component in components]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors, "cases", drawn)  # which takes seconds
        vectors.write(out, components=components)
    return out


def index(folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    return told


def reader() -> SimpleNamespace:
    """Return what the page tells its readers to write."""
    page = (DOCS / "how-to" / "vectors.md").read_text(encoding="utf-8")
    shown = page.partition("<!-- file: read_vectors.py -->")[2]
    code = next(token.content for token in MarkdownIt().parse(shown) if token.type == "fence")
    names: dict[str, Any] = {}
    exec(compile(code, "read_vectors.py", "exec"), names)
    return SimpleNamespace(**names)


READER = reader()


# What there is


def judged(expected: Expected) -> Array:
    return expected.array if expected.rows is None else expected.array[expected.rows]


@pytest.mark.exhaustive
def test_every_component_is_there_in_both_precisions(everything):
    told = {(one.recipe.component, one.precision) for one in everything}
    exact = {name for name in PARTS if COMPONENTS[name].chapter in ("masks", "batch")}
    assert {name for name, _ in told} == set(PARTS)
    assert {name for name, precision in told if precision == "float32"} == set(PARTS) - exact


def allowed(name: str, value: str | float) -> bool:
    try:
        PAPER.but(**{name: value})
    except ValueError:
        return False
    return True


@pytest.mark.proof
def test_every_option_of_every_choice_is_shown(everything):
    # One shows under another option alone, one where sizes have fewer heads of keys, and two in
    # half precision, which has no vectors.
    hidden = {"decay_groups", "key_heads", "means_arithmetic", "rms_cast"}
    with_vectors = {
        name
        for name, one in CHOICES.items()
        if one.clause.partition(".")[0] not in ("cache", "decoding", "initialisation")
        and name not in hidden
    }
    shown = {
        (name, value)
        for one in everything
        for name, value in one.choices.as_dict().items()
        if value != PAPER[name]
    }
    wanted = {
        (name, value)
        for name, value in options()
        if name in with_vectors
        and value not in (PAPER[name], "unspecified")  # which is no answer
        and allowed(name, value)
    }
    part = ("rotary_width", 0.5)  # without which the convention for a part does not show
    assert shown ^ (wanted | {part}) == set()
    assert {name for name, _ in shown} == with_vectors


@pytest.mark.proof
def test_a_case_of_an_option_is_far_from_the_case_without_it(everything):
    plain = {one.name: one for one in everything}
    for one in everything:
        start, _, last = one.name.rpartition("/")
        base = plain.get(f"{start}/float64")
        if "=" in last and base is not None:
            mine, other = judged(one.expected[0]), judged(base.expected[0])
            if one.name.endswith("=nan"):
                assert np.isnan(mine).any(), one.name
                assert not np.isnan(other).any(), one.name
            elif mine.shape == other.shape:
                assert np.abs(mine - other).max() > base.expected[0].absolute, one.name


def test_names_are_unique_and_clauses_exist(everything):
    names = [one.name for one in everything]
    assert len(set(names)) == len(names)
    assert {one.clause for one in everything} <= set(clauses())


def test_expected_arrays_are_finite_and_not_constant(everything):
    odd = ("constant-row", "one-query", "length-1", "step-", "in-use-")
    for one in everything:
        rows = judged(one.expected[0])
        if not one.name.endswith("=nan"):
            assert np.isfinite(rows).all(), one.name
        if rows.ndim == 0:  # a single number
            zero = one.recipe.name == "all-padding" or one.name.endswith("first_step=zero")
            assert zero or rows != 0, one.name
        elif not one.recipe.name.startswith(odd):
            assert len(np.unique(rows)) > 1, one.name


def test_poison_stands_behind_masks_and_reaches_nothing(everything):
    poisoned = [
        one
        for one in everything
        if any(isinstance(x, np.ndarray) and (x == POISON).any() for x in one.given.inputs)
        and one.choices.mask_fill == "exact"
    ]
    assert {one.recipe.component for one in poisoned} >= {"attention", "encoder", "decoder"}
    for one in poisoned:
        assert np.abs(judged(one.expected[0])).max() < 1e3, one.name


def test_bounds_are_those_of_the_precision(everything):
    for one in everything:
        for expected in one.expected:
            if expected.array.dtype.kind in "bi":
                assert expected.absolute == 0.0
            elif "arithmetic" not in one.name and "alibi" not in one.name:  # slopes in float32
                size = np.abs(np.nan_to_num(judged(expected))).max()
                epsilon = np.finfo(dtype(one.precision)).eps
                # At least a rounding of the largest number, and amplified by no more than inputs
                # of a thousand can (rows of a norm far from zero, products under a softmax).
                assert epsilon * size / 2 <= expected.absolute <= 1e6 * epsilon * (1 + size)


@pytest.mark.proof
def test_common_choices_are_those_that_were_asked_for():
    given = Choices(norm_placement="pre", fully_masked_row="zero")
    found = list(cases(["attention", "encoder"], given, 0, 1))
    assert {one.choices.norm_placement for one in found if "/norm_place" not in one.name} == {"pre"}
    assert "attention/fully-masked-row/float64" in [one.name for one in found]
    assert "encoder/poison-behind-padding/norm_placement=post" in [one.name for one in found]


# What is written


@pytest.mark.proof
def test_the_index_is_of_the_schema_and_leads_to_every_tensor(folder):
    text = (
        files("attentest.studies.vectors").joinpath("index.schema.json").read_text(encoding="utf-8")
    )
    assert (folder / "index.schema.json").read_text(encoding="utf-8") == text
    schema = json.loads(text)
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(index(folder))
    stored = {path.name: load_file(path) for path in folder.glob("*.safetensors")}
    named = set()
    for case in index(folder)["cases"]:
        entries = [*case["inputs"], *case["parameters"].values(), *case["expected"]]
        entries += [one["judged"] for one in case["expected"] if one["judged"]]
        for entry in entries:
            if "tensor" in entry:
                array = stored[case["file"]][entry["tensor"]]
                told = (str(array.dtype), list(array.shape))
                assert told == (entry["dtype"], entry["shape"])
                named.add((case["file"], entry["tensor"]))
    assert named == {(file, name) for file, arrays in stored.items() for name in arrays}


@pytest.mark.proof
def test_the_same_seed_gives_the_same_bytes_and_another_does_not(tmp_path, folder):
    for name, seed in (("again", 0), ("other", 1)):
        vectors.write(tmp_path / name, components=["attention"], seed=seed)
    one = (folder / "attention.safetensors").read_bytes()
    assert (tmp_path / "again" / "attention.safetensors").read_bytes() == one
    assert (tmp_path / "other" / "attention.safetensors").read_bytes() != one


@pytest.mark.proof
def test_both_formats_hold_the_same(tmp_path):
    for kind in vectors.FORMATS:
        vectors.write(tmp_path / kind, components=["attention"], file_format=kind)
    packed = np.load(tmp_path / "npz" / "attention.npz")
    plain = load_file(tmp_path / "safetensors" / "attention.safetensors")
    assert set(packed) == set(plain)
    assert all(packed[name].tobytes() == plain[name].tobytes() for name in plain)
    again = vectors.write(tmp_path / "again", components=["attention"], file_format="npz")
    first = (tmp_path / "npz" / "attention.npz").read_bytes()
    assert (again.folder / "attention.npz").read_bytes() == first


def test_everything_takes_a_few_megabytes(folder):
    assert sum(path.stat().st_size for path in folder.iterdir()) < 8e6


def test_more_draws_are_other_numbers_of_the_same_cases(tmp_path):
    written = vectors.write(tmp_path / "out", components=["layer_norm"], count=2)
    told = index(written.folder)["cases"]
    assert len(told) == written.cases["layer_norm"]
    first, second = (
        next(one for one in told if one["name"] == name)
        for name in ("layer_norm/several/float64", "layer_norm/several/float64/1")
    )
    stored = load_file(written.folder / first["file"])
    one, other = (stored[case["inputs"][0]["tensor"]] for case in (first, second))
    assert one.shape == other.shape
    assert (one != other).any()


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "mine").write_text("mine", encoding="utf-8")
    with pytest.raises(Occupied, match="left as it is"):
        vectors.write(tmp_path / "mine")
    with pytest.raises(Occupied, match="cannot be written"):
        vectors.write(tmp_path / "nowhere" / "out")
    assert (tmp_path / "mine").read_text(encoding="utf-8") == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


# The command


def command(*words: str) -> Result:
    return CliRunner().invoke(main, ["vectors", *words])


def test_the_command_says_what_it_wrote(tmp_path):
    out = tmp_path / "out"
    told = command(str(out), "--component", "embedding", "--choice", "embedding_scale=none")
    assert told.exit_code == 0, told.output
    assert f"were written to {out}" in told.output
    assert index(out)["choices"]["embedding_scale"] == "none"
    assert [one["choices"] for one in index(out)["cases"]][-1] == {"embedding_scale": "sqrt-d"}


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (("--component", "atention"), "attention"),
        (("--choice", "norm_placment=pre"), "norm_placement"),
        (("--choice", "norm_placement=before"), "one of: post, pre"),
        (("--choice", "norm_placement"), "NAME=OPTION"),
        (("--file-format", "pickle"), "safetensors"),
        (("--count", "0"), "count"),
    ],
)
def test_invalid_request_is_a_usage_error(tmp_path, words, near):
    told = command(str(tmp_path / "out"), *words)
    assert (told.exit_code, near in told.output) == (2, True), told.output
    assert not (tmp_path / "out").exists()
    with pytest.raises(UnknownName):
        vectors.write(tmp_path / "out", file_format="pickle")


# What is found: a backend that nobody wrote for these vectors, read by the reader of the docs


def answers(backend: Any, case: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    sizes = Sizes(**case["sizes"])
    part = backend.build(case["component"], sizes, precision=case["precision"])
    if case["parameters"]:
        part.load(case["parameters"])
    found = part(*case["inputs"], method=case["method"])
    yield from zip(found if isinstance(found, tuple) else (found,), case["expected"], strict=False)


def wrong(folder: Path, make: Callable[[Mapping[str, Any]], Any]) -> dict[str, list[str]]:
    """Return the judged cases by whether they are right."""
    judged: dict[str, list[str]] = {"right": [], "wrong": []}
    for case in READER.vectors(folder):
        backend = make(case["choices"])
        if backend is not None and case["component"] in backend.components:
            good = all(READER.is_close(one, expected) for one, expected in answers(backend, case))
            judged["right" if good else "wrong"].append(case["name"])
    return judged


@pytest.mark.exhaustive
def test_a_sound_backend_is_right_in_every_case(folder):
    found = wrong(folder, lambda choices: reference_backend(Plain, choices))
    assert found["wrong"] == []
    assert len(found["right"]) > 120


node = pytest.mark.skipif(not shutil.which("node"), reason="Node.js is not installed")


def checked(scripts: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["node", str(scripts / "check.mjs"), str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.proof
@node
def test_the_port_in_javascript_is_right_in_every_case_that_it_implements(folder):
    told = checked(JAVASCRIPT, folder)
    assert told.returncode == 0, told.stdout + told.stderr
    assert " 0 wrong," in told.stdout
    assert int(told.stdout.split()[0]) >= 70


@share(7)
@node
@pytest.mark.parametrize(
    ("line", "mistake"),
    [
        (" / Math.sqrt(width)", ""),
        ("Math.exp(score - peak)", "Math.exp(score)"),
        ("if (!mask || allowed", "if (true || allowed"),
        ("length === 1 ? 0 : place", "place"),
        ("* heads + h) * length + l", "* heads + l % heads) * length + l"),
        ("variance + epsilon", "variance"),
        ("variance + epsilon", "variance + 1e-6"),
        ("width) / width", "width) / (width - 1)"),
        ("value - mean", "value"),
        ("Math.floor(column / 2)) / width", "column) / width"),
        ("10000 **", "1000 **"),
        ("column % 2 === 0", "column % 2 === 1"),
    ],
)
def test_a_mistake_in_the_port_is_caught(ported, tmp_path, line, mistake):
    for file in JAVASCRIPT.glob("*.mjs"):
        shutil.copy(file, tmp_path)
    port = tmp_path / "transformer.mjs"
    text = port.read_text(encoding="utf-8")
    assert line in text
    port.write_text(text.replace(line, mistake), encoding="utf-8")
    result = checked(tmp_path, ported)
    assert result.returncode == 1, result.stdout
    assert "times the bound" in result.stdout
