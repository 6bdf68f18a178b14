"""Design choices as targets: `paper NAME=OPTION ..`."""

import pytest
import torch
from click.testing import CliRunner

import attentest
from attentest.interfaces.cli.main import main
from attentest.targets import paper, resolve, scaffold
from attentest_spec import CHOICES, PAPER, Choices, Sizes, UnknownName, registry
from attentest_spec.registry import LoadFailure

torch.set_num_threads(1)

PRE = "paper norm_placement=pre"


def test_word_alone_is_the_paper() -> None:
    backend = resolve.load("paper")
    assert backend.name == "paper"
    assert Choices.of(backend.choices) == PAPER


def test_pairs_change_the_choices_that_they_name() -> None:
    backend = resolve.load(f"{PRE} mask_fill=-1e9 position_offset=2")
    expected = PAPER.but(norm_placement="pre", mask_fill=-1e9, position_offset=2.0)
    assert Choices.of(backend.choices) == expected
    assert backend.name == f"{PRE} mask_fill=-1e9 position_offset=2"
    assert backend.title.startswith("Vaswani et al. 2017, norm_placement=pre, ")


@pytest.mark.parametrize(
    ("choice", "option"),
    [(one.name, option.name) for one in CHOICES.values() for option in one.options[1:]],
)
def test_every_option_is_built(choice: str, option: str) -> None:
    sizes = Sizes(d_model=4, heads=2, layers=1, source_vocabulary=5, target_vocabulary=5)
    resolve.load(f"paper {choice}={option}").build("model", sizes)


REFUSED = {
    "norm_plcement=pre": "There is no choice named 'norm_plcement'; did you mean norm_placement",
    "norm_placement=prre": "no option of norm_placement named 'prre'; did you mean pre?",
    "norm_placement=": "no option of norm_placement named ''; known: post, pre.",
    "pre": "write norm_placement=pre or block_norms=pre.",
    "learned": "write positional_encoding=learned.",
    "mask_fill=minus": "known: a negative number, the fill itself, exact.",
    "mask_fill=5": "mask_fill must be negative",
    "norm_epsilon=nan": "must be a finite number",
    "final_norm=none final_norm=present": "names the choice final_norm more than once",
}


@pytest.mark.parametrize(("words", "said"), REFUSED.items())
def test_mistyped_choice_is_refused_before_a_process_starts(words: str, said: str) -> None:
    result = CliRunner().invoke(main, ["compare", "paper", f"paper {words}"])
    assert result.exit_code == 2
    assert said in result.output
    with pytest.raises((UnknownName, LoadFailure)):
        resolve.load(f"paper {words}")


@pytest.mark.parametrize("command", ["trace", "cost", "learn", "identify", "run"])
def test_every_command_refuses_a_mistyped_choice(command: str) -> None:
    result = CliRunner().invoke(main, [command, "paper norm_placement=prre"])
    assert result.exit_code == 2
    assert "did you mean pre?" in result.output


def test_announced_backend_of_the_same_name_is_never_replaced(monkeypatch) -> None:
    monkeypatch.setattr(registry, "names", lambda: ["paper"])
    with pytest.raises(LoadFailure, match="that of an announced backend"):
        resolve.load("paper")
    assert resolve.load(PRE).name == PRE


def test_no_new_implementation_takes_the_word(tmp_path) -> None:
    with pytest.raises(scaffold.Refused, match="the word for design choices"):
        scaffold.write("paper", tmp_path)


def test_reproduction_code_loads_the_same_backend() -> None:
    names: dict[str, object] = {}
    exec(resolve.loader(PRE), names)
    assert getattr(names["backend"], "name", "") == PRE


@pytest.mark.parametrize("target", ["paper.py", "paper:backend", "papers", "newspaper x=y"])
def test_other_targets_may_contain_the_word(target: str) -> None:
    assert not paper.is_paper(target)


@pytest.mark.proof
def test_trace_and_learning_take_choices() -> None:
    assert attentest.trace(PRE).parting.step == ""
    learned = attentest.learn("paper", PRE, length=3, steps=1)
    assert learned.backends == ("paper", PRE)
    assert not learned.failures
