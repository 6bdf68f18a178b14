"""`attentest trace`: a backend step by step, beside the oracle."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner, Result

from attentest.faults import fault_of, inject
from attentest.faults.reference_models import REFERENCE_MODELS, reference_backend
from attentest.interfaces.cli.main import main
from attentest.results import files
from attentest.studies.comparison import EXAMPLES, follow
from attentest.studies.comparison.participant import local
from attentest.studies.comparison.tracing import departs, trace
from attentest_spec import Backend
from attentest_spec.registry import LoadFailure

TARGETS = """
from attentest.harness.oracle import Reference
from attentest_spec import Choices
import os

class Wrong(Reference):
    def build(self, component, *given, **named):
        part = super().build(component, *given, **named)
        right = part._answer
        part._answer = lambda *given: 2.0 * right(*given)
        return part

class Dying(Reference):
    def build(self, *given, **named):
        os._exit(5)

backend, wrong, dying = (
    kind(Choices(), components=("encoder_layer",)) for kind in (Reference, Wrong, Dying)
)
"""


def command(*words: str, columns: int = 80) -> Result:
    return CliRunner(env={"COLUMNS": str(columns)}).invoke(main, ["trace", *words])


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    path = tmp_path_factory.mktemp("targets") / "some_targets.py"
    path.write_text(TARGETS)
    return str(path)


def part_of(backend: Backend, *components: str) -> Backend:
    return replace(backend, recipes={name: backend.recipes[name] for name in components})


def plain(**choices) -> Backend:
    return part_of(reference_backend(REFERENCE_MODELS["plain"], choices), "model", "layer_norm")


def test_every_step_of_a_sound_model_stands_beside_the_oracle():
    found = trace("plain", local(plain()), EXAMPLES["small"])
    steps = [row.step for row in found.rows]
    assert steps[:2] == ["source_embedding", "source_positions"]
    assert steps[-1] == "result"
    assert found.parting.step == ""
    shown = [row for row in found.rows if row.difference is not None]
    assert max(row.difference for row in shown) < 1e-12
    for row in shown:
        np.testing.assert_allclose(row.output.shape, row.expected.shape)


@pytest.mark.proof
def test_the_worked_example_of_the_course_has_its_shapes():
    found = trace("plain", local(plain()), EXAMPLES["course"])
    rows = {row.step: row for row in found.rows}
    assert rows["result"].output.shape == (2, 4, 10)
    assert rows["decoder.layers.8.feed_forward"].output.shape == (2, 4, 6)
    assert not any(departs(row) for row in found.rows)


def test_the_numbers_are_those_of_the_step():
    found = trace("plain", local(plain()), EXAMPLES["small"])
    rows = {row.step: row for row in found.rows}
    embedded, placed = rows["source_embedding"], rows["source_positions"]
    np.testing.assert_array_equal(embedded.inputs[0], EXAMPLES["small"].source)
    np.testing.assert_array_equal(placed.inputs[0], embedded.expected)
    np.testing.assert_allclose(
        rows["encoder.layers.0"].inputs[0], placed.expected, rtol=0, atol=1e-12
    )


def test_a_mistake_is_seen_at_its_step():
    wrong = part_of(inject(fault_of("generator.sigmoid"), "plain"), "generator")
    found = trace("wrong", local(wrong), EXAMPLES["small"])
    assert found.parting.step == "generator: result"
    assert found.parting.inside
    assert [row.step for row in found.rows if departs(row)] == ["generator: result"]


def test_the_result_is_plain_data():
    found = trace("plain", local(plain()), EXAMPLES["small"])
    content = json.loads(json.dumps(found.as_dict()))
    assert content["rows"][0]["step"] == "source_embedding"
    assert np.shape(content["rows"][0]["output"]) == (2, 5, 8)


@pytest.mark.parametrize("columns", [80, 160])
def test_command_prints_shapes_and_values_and_the_reference(target, columns):
    result = command(target, columns=columns)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    place = next(n for n, line in enumerate(lines) if line.split()[1:2] == ["self_attention_norm"])
    inward, outward, reference = (lines[place + n].split() for n in (1, 2, 3))
    assert [one[0] for one in (inward, outward, reference)] == ["in", "out", "reference"]
    assert outward[1:4] == ["(2,", "5,", "8)"]
    assert outward[1:] == reference[1:]
    assert "can be seen, and are equal to those of the reference" in " ".join(result.output.split())
    assert max(len(line.replace(target, "")) for line in lines) <= columns


def test_a_trace_is_written_as_a_result_file(tmp_path, target):
    path = tmp_path / "trace.json"
    assert command(target, "--json", str(path)).exit_code == 0
    content = files.read(path, "trace")
    assert content["rows"][-1]["step"] == "encoder_layer: result"
    assert np.shape(content["rows"][-1]["output"]) == (2, 5, 8)


def test_a_result_that_was_there_outlives_a_trace_that_fails(tmp_path):
    path = tmp_path / "t.json"
    path.write_text('{"type": "trace", "kept": true}')
    done = CliRunner().invoke(main, ["trace", "nowhere.py:model", "--json", str(path)])
    assert done.exit_code == 3
    assert path.read_text() == '{"type": "trace", "kept": true}'


def test_a_notebook_shows_every_step():
    found = trace("<plain>", local(plain()), EXAMPLES["small"])
    html = found._repr_html_()
    assert "source_embedding" in html
    assert "&lt;plain&gt;" in html
    assert len(found.step_rows()) == len(found.rows) == html.count("<tr>") - 1


def test_python_follows_a_backend_or_a_target(target):
    found = follow(
        part_of(reference_backend(REFERENCE_MODELS["plain"], {"activation": "gelu"}), "encoder")
    )
    assert found.backend == "plain"
    assert found.choices["activation"] == "gelu"
    assert found.parting.step == ""
    assert follow(f"{target}:wrong").parting.step == "encoder_layer: result"
    with pytest.raises(LoadFailure):
        follow(f"{target}:missing")


def test_only_the_steps_that_are_asked_for_are_printed(target):
    result = command(target, "--only", "encoder_layer: feed_forward")
    steps = [line for line in result.output.splitlines() if "differs by" in line or "equal" in line]
    assert steps
    assert "self_attention" not in result.output


@pytest.mark.parametrize(
    ("name", "code", "why"),
    [
        ("wrong", 1, "first differs from the reference under its choices"),
        ("dying", 1, "exit code 5"),
        ("missing", 3, "no object named 'missing'"),
    ],
)
def test_failure_is_reported_with_its_exit_code(target, name, code, why):
    result = command(f"{target}:{name}")
    assert result.exit_code == code, result.output
    assert why in " ".join(result.output.split())


def test_unknown_names_are_a_usage_error():
    assert command("nobody").exit_code == 2
    assert command("one.py", "--input", "curse").exit_code == 2
