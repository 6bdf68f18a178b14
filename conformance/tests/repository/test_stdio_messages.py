"""The messages of the stdio protocol: their schema, and what the documentation shows of them."""

import json
import subprocess
import sys
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
from folders import REPOSITORY
from jsonschema import Draft202012Validator

from attentest.targets import resolve
from attentest_spec import Sizes
from attentest_spec.registry import LoadFailure
from attentest_spec.stdio import Program, conversation, pipe
from attentest_spec.stdio.pipe import Pipe
from attentest_spec.stdio.tensors import TYPES, decode

DOCS = REPOSITORY / "docs" / "examples"
PROGRAM = REPOSITORY / "spec" / "tests" / "test_stdio" / "stdio_program.py"
COMMAND = [sys.executable, "-S", "-E", str(PROGRAM)]


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bytes, bytes]]:
    """Requests and answers, line by line."""
    heard: list[tuple[bytes, bytes]] = []
    ask = Pipe.ask

    def listened(self: Pipe, line: bytes, limit: float) -> bytes:
        answer = ask(self, line, limit)
        heard.append((line, answer))
        return answer

    monkeypatch.setattr(Pipe, "ask", listened)
    return heard


def schema() -> dict[str, Any]:
    text = files("attentest_spec.stdio").joinpath("schema.json").read_text(encoding="utf-8")
    definitions: dict[str, Any] = json.loads(text)
    return definitions


def validator(name: str) -> Draft202012Validator:
    whole = schema()
    Draft202012Validator.check_schema(whole)
    return Draft202012Validator({**whole, "$ref": f"#/$defs/{name}"})


@pytest.mark.proof
def test_every_message_is_of_the_schema(messages) -> None:
    x = np.zeros((1, 6))
    backend = Program([*COMMAND, "value"])
    built = backend.build("layer_norm", Sizes())
    built.load({"gain": np.ones(6)})
    with pytest.raises(ValueError, match="too much"):
        built(x, None, 3)
    built.vjp((x, None), x)
    built.train()
    built.eval()
    built.export()
    del built
    backend.build("layer_norm", Sizes())
    backend.close()
    backend = Program([*COMMAND, "weights"])
    backend.build("layer_norm", Sizes())(x)
    backend.close()
    seen = set()
    for asked, answered in messages:
        request, answer = json.loads(asked), json.loads(answered)
        validator("request").validate(request)
        name = "error" if "error" in answer else f"answer-{request['do']}"
        validator(name).validate(answer)
        seen.add(request["do"])
    validator("request").validate(json.loads(pipe.STOP))
    assert seen | {"stop"} == set(schema()["$defs"]["request"]["properties"]["do"]["enum"])


def test_the_schema_and_the_code_know_the_same_words() -> None:
    definitions = schema()["$defs"]
    assert definitions["tensor"]["properties"]["dtype"]["enum"] == list(TYPES)
    kinds = definitions["error"]["properties"]["error"]["properties"]["kind"]["enum"]
    assert kinds == list(conversation.ERRORS)
    assert definitions["answer-start"]["properties"]["protocol"]["const"] == conversation.PROTOCOL


# Targets


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("stdio:no-such-program-anywhere", "could not be started: .*No such file"),
        ("stdio:", "names no program"),
        ("stdio:node 'port.mjs", "cannot be read: No closing quotation"),
        (f"stdio:{' '.join(COMMAND)} odd_component", "did you mean layer_norm"),
        (f"stdio:{' '.join(COMMAND)} dies_at_start", "its stderr ends: .*out of luck"),
    ],
)
def test_a_command_that_is_none_is_not_loaded(target, words) -> None:
    with pytest.raises(LoadFailure, match=words):
        resolve.load(target)


# What the documentation shows


@pytest.mark.proof
def test_the_transcript_of_the_documentation_is_what_the_program_says() -> None:
    lines = (DOCS / "transcript.txt").read_text(encoding="utf-8").splitlines()
    asked = [line.removeprefix("> ") for line in lines if line.startswith("> ")]
    answered = [line.removeprefix("< ") for line in lines if line.startswith("< ")]
    assert len(lines) == len(asked) + len(answered)
    command = [sys.executable, "-S", "-E", str(DOCS / "program.py")]
    definitions = subprocess.run(
        command, input="\n".join([*asked, ""]), capture_output=True, text=True, check=True
    )
    assert definitions.stdout.splitlines() == answered
    seen = [json.loads(line)["do"] for line in asked]
    for request, answer in zip(asked, answered, strict=False):
        validator("request").validate(json.loads(request))
        name = "error" if "error" in answer else f"answer-{json.loads(request)['do']}"
        validator(name).validate(json.loads(answer))
    assert seen[:5] == ["start", "describe", "build", "load", "call"]
    output = decode(json.loads(answered[4])["outputs"][0])
    assert np.allclose(output, [[[-1.0, 2.5]]], rtol=0, atol=3e-5)  # (-1, 1) but for epsilon
