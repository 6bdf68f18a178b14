"""`attentest convert`: files that are read and written, and what is said."""

import json
import pickle
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import torch
from click.testing import CliRunner, Result
from safetensors import safe_open
from safetensors.numpy import save
from safetensors.torch import load_model, save_model

from attentest.faults.reference_models import Fused, Plain, reference_backend
from attentest.interfaces.cli.main import main
from attentest.results.output import Occupied, create
from attentest.studies.convert import BadCheckpoint, Checkpoint, converted, isolated, read, write
from attentest.studies.participants import Local
from attentest.targets import resolve
from attentest_spec import Backend, Sizes
from attentest_spec.setting import Array

SIZES = Sizes(d_model=6, heads=2, d_ff=10, target_vocabulary=13)
BACKENDS = """
from attentest.faults.reference_models import Fused, Plain, reference_backend
plain = reference_backend(Plain, {"tying": "none"}, "plain")
fused = reference_backend(Fused, {"tying": "none"}, "fused")
other = reference_backend(Fused, {"tying": "none", "activation": "gelu"}, "other")
"""
TIED = {"tying": "target-and-output"}


def module(backend: Backend) -> torch.nn.Module:
    """Return the model of `backend` as its users have it."""
    built = backend.build("model", SIZES, precision="float32").module  # type: ignore[attr-defined]
    assert isinstance(built, torch.nn.Module)
    return built


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder, with two backends and a checkpoint of the first in it."""
    (tmp_path / "pair_to_convert.py").write_text(BACKENDS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    save_model(module(reference_backend(Plain, {"tying": "none"})), "in.safetensors")
    return tmp_path


def convert(*words: str, source: str = "plain", target: str = "fused") -> Result:
    place = "pair_to_convert.py:{}".format
    given = ["convert", *words, "--from", place(source), "--to", place(target)]
    return CliRunner().invoke(main, given)


def refused(result: Result, code: int, text: str) -> None:
    """Demand the exit code, the words, and that nothing was written."""
    assert result.exit_code == code, result.output
    assert re.search(text, " ".join(result.output.split())), result.output
    assert not Path("out.safetensors").exists()
    assert not list(Path().glob(".*"))


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Convert in this process: what is refused there is the same, and is sooner known."""

    def local(module: str, targets: tuple[str, ...], *_: object, **__: object) -> Local:
        source, target = (resolve.load(one) for one in targets)
        return Local(isolated.methods(source, target))

    monkeypatch.setattr(isolated, "Remote", local)


# The command --------------------------------------------------------------------------------------


def test_a_checkpoint_goes_over_and_comes_back_bit_for_bit(folder: Path) -> None:
    there = convert("in.safetensors", "out.safetensors", "--sizes", "heads=2")
    assert there.exit_code == 0, there.output
    entries = len(read(folder / "out.safetensors").entries)
    assert f"out.safetensors was written: {entries} entries, carried bit for bit." in there.output
    differences = re.findall(r"by (\S+) \(relative (\S+)\)", there.output)
    assert len(differences) == 2
    assert all(float(one) < 1e-12 for pair in differences for one in pair)
    back = convert("out.safetensors", "back.safetensors", source="fused", target="plain")
    assert back.exit_code == 0, back.output
    before, after = (read(Path(f"{name}.safetensors")).entries for name in ("in", "back"))
    assert before.keys() == after.keys()
    assert all(array.tobytes() == after[name].tobytes() for name, array in before.items())


def test_a_process_of_its_own_changes_no_byte(folder: Path) -> None:
    assert convert("in.safetensors", "out.safetensors", "--sizes", "heads=2").exit_code == 0
    pair = [
        reference_backend(style, {"tying": "none"}, name)
        for style, name in ((Plain, "plain"), (Fused, "fused"))
    ]
    found = converted(read(folder / "in.safetensors"), *pair, sizes={"heads": 2})
    write(folder / "here.safetensors", found.checkpoint)
    assert Path("here.safetensors").read_bytes() == Path("out.safetensors").read_bytes()


def test_existing_files_are_never_overwritten(folder: Path) -> None:
    (folder / "out.safetensors").write_text("three years of work", encoding="utf-8")
    result = convert("pair_to_convert.py", "out.safetensors")  # told before anything is read
    assert result.exit_code == 2
    assert "out.safetensors exists and was left as it is" in result.output
    assert (folder / "out.safetensors").read_text(encoding="utf-8") == "three years of work"


def test_a_refusal_writes_nothing_and_an_approximation_says_what_it_is(folder: Path) -> None:
    words = ("in.safetensors", "out.safetensors", "--sizes", "heads=2")
    refused(convert(*words, target="other"), 1, r"activation \(relu and gelu\)")
    result = convert(*words, "--approximate", target="other")
    assert result.exit_code == 0
    assert "carried approximately" in result.output
    assert "Not exact: choices differ between plain and other: activation" in result.output


@pytest.mark.usefixtures("folder", "at_once")
@pytest.mark.parametrize(
    ("sizes", "code", "text"),
    [
        ("", 1, r"known of the model: heads\. Give it, as in --sizes heads=8"),
        ("heads", 2, "takes NAME=NUMBER"),
        ("heads=two", 2, "'heads=two' is not"),
        ("heds=2", 2, "did you mean heads"),
        ("heads=-2", 2, "'heads=-2' is not"),
        ("heads=0", 1, "heads cannot be 0"),
    ],
)
def test_sizes_that_are_unclear_are_told(sizes: str, code: int, text: str) -> None:
    refused(convert("in.safetensors", "out.safetensors", "--sizes", sizes), code, text)


@pytest.mark.usefixtures("folder")
def test_a_backend_that_cannot_be_loaded_has_its_own_exit_code() -> None:
    result = convert("in.safetensors", "out.safetensors", target="nobody")
    refused(result, 3, "no object named 'nobody'")
    words = ["in.safetensors", "out.safetensors", "--from", "nobody", "--to", "nobody"]
    refused(CliRunner().invoke(main, ["convert", *words]), 2, "no backend named 'nobody'")


# Files --------------------------------------------------------------------------------------------


class Poison:
    """Shows whether a file was unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path("poisoned"),)  # type: ignore[return-value]


def foreign(kind: str) -> bytes:
    """Return the content of a file that is no checkpoint."""
    match kind:
        case "pickle":
            return pickle.dumps(Poison())
        case "truncated":
            return Path("in.safetensors").read_bytes()[:-5]
        case "huge header":
            return (2**62).to_bytes(8, "little") + b"{}"
        case "text":
            return b"no checkpoint at all"
        case _:
            return b""


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("kind", ["pickle", "truncated", "huge header", "text", "empty"])
def test_a_file_of_another_kind_is_refused_and_never_run(kind: str) -> None:
    Path("wrong.safetensors").write_bytes(foreign(kind))
    result = convert("wrong.safetensors", "out.safetensors")
    refused(result, 2, "wrong.safetensors cannot be read as a safetensors file: .* saved as one")
    assert not Path("poisoned").exists()


@pytest.mark.usefixtures("folder")
def test_a_file_that_is_not_there_is_told() -> None:
    refused(convert("nothing", "out.safetensors"), 2, "'nothing' does not exist")
    refused(convert(".", "out.safetensors"), 2, "File '.' is a directory")


@pytest.mark.parametrize(
    "metadata", ["{", "[]", '{"sizes": 3}', '{"sizes": {"heads": "8"}}', '{"choices": {"a": []}}']
)
def test_metadata_that_is_not_ours_is_refused(tmp_path: Path, metadata: str) -> None:
    path = tmp_path / "one.safetensors"
    path.write_bytes(save({"weight": np.ones(2)}, {"attentest": metadata}))
    with pytest.raises(BadCheckpoint, match="its metadata hold under 'attentest' is not the JSON"):
        read(path)


def test_numbers_of_another_kind_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "one.safetensors"
    path.write_bytes(save({"weight": np.ones(2, np.uint64)}))
    with pytest.raises(BadCheckpoint, match="its entry weight is of the type U64"):
        read(path)


def test_sizes_and_choices_are_kept_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "one.safetensors"
    write(path, Checkpoint({"a": np.ones(2)}, {"heads": 8}, {"output": "logits"}, {"by": "me"}))
    found = read(path)
    assert found.sizes == {"heads": 8}
    assert found.choices == {"output": "logits"}
    assert found.notes == {"by": "me"}


@pytest.mark.parametrize("kind", ["float64", "float32", "float16", "int64", "bool", "bfloat16"])
def test_numbers_of_every_kind_come_back_as_they_were(tmp_path: Path, kind: str) -> None:
    wanted = ml_dtypes.bfloat16 if kind == "bfloat16" else np.dtype(kind)
    turned: Array = np.arange(6).reshape(2, 3).astype(wanted).T
    write(tmp_path / "one", Checkpoint({"turned": turned, "point": turned[0, 0].reshape(())}))
    found = read(tmp_path / "one").entries
    assert found["turned"].dtype == turned.dtype
    assert found["turned"].tolist() == turned.tolist()
    assert found["point"].shape == ()


def test_a_tied_matrix_is_stored_once_as_the_library_does_it(tmp_path: Path) -> None:
    backend = reference_backend(Fused, TIED)
    state = backend.build("model", SIZES, precision="float32").state()
    write(tmp_path / "ours", Checkpoint(state))
    model = module(backend)
    assert load_model(model, tmp_path / "ours") == (set(), [])
    assert all(
        torch.equal(value, torch.tensor(state[name])) for name, value in model.state_dict().items()
    )
    save_model(model, str(tmp_path / "theirs"))
    with safe_open(tmp_path / "ours", "np") as ours, safe_open(tmp_path / "theirs", "np") as theirs:
        assert set(ours.keys()) == set(theirs.keys())
        told = dict(ours.metadata())
        assert read(tmp_path / "ours").notes == {}
        assert json.loads(told.pop("attentest")) == {"sizes": {}, "choices": {}}
        assert told == theirs.metadata()


def test_a_file_appears_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    create(tmp_path / "new", b"content")
    assert (tmp_path / "new").read_bytes() == b"content"
    with pytest.raises(Occupied, match="exists and was left as it is"):
        create(tmp_path / "new", b"other")
    with pytest.raises(Occupied, match=r"No such file or directory\. Nothing was"):
        create(tmp_path / "nowhere" / "new", b"content")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    with pytest.raises(Occupied, match="exists"):
        create(tmp_path / "dangling", b"content")
    assert {path.name for path in tmp_path.iterdir()} == {"new", "dangling"}
    assert (tmp_path / "new").read_bytes() == b"content"
