"""Construction of code that was not written for the contract: configurations and keywords."""

import sys

import pytest
from folders import SUPPORT
from proof import share
from user_files import write_files

import attentest

WILD = SUPPORT / "wild"
sys.path.insert(0, str(WILD))

SOUND = [
    ("Block", "encoder_layer", "n_head=heads", "bias=True", "dropout=dropout"),
    ("FeedForward", "feed_forward", "cfg=(emb_dim=d_model, hidden_dim=d_ff)"),
    ("Keywords", "feed_forward", "d_model=d_model", "d_ff=d_ff", "dropout=dropout"),
    ("HandedOn", "feed_forward", "d_model=d_model, d_ff=d_ff, dropout=dropout"),
    ("HeadWidth", "multi_head_attention", "dim_head=d_model/heads"),
    ("Channels", "layer_norm", "num_channels=d_model"),
    ("Chosen", "feed_forward", "width=d_model, hidden=d_ff, activation=relu"),
    ("Annotated", "feed_forward", "d_model=d_model, d_ff=d_ff"),
]


@share(4, rest=1)
@pytest.mark.parametrize(("name", "component", "said"), [(a, b, rest) for a, b, *rest in SOUND])
def test_settings_of_every_form_are_sizes(name, component, said):
    report = attentest.check(str(WILD / f"configured_parts.py:{name}"), component)
    for words in said:
        assert words in report.inferred[1] + report.inferred[2] + report.inferred[3]
    assert report.conforms, str(report)
    assert sum(verdict.status != "absent" for verdict in report) >= 9, str(report)


UNITS = """
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, {inputs}, {between}):
        super().__init__()
        self.up, self.down = nn.Linear({inputs}, {between}), nn.Linear({between}, {inputs})

    def forward(self, x):
        return self.down(self.up(x).relu())
"""


@pytest.mark.parametrize(
    ("inputs", "between"),
    [("hidden_units", "inner_units"), ("d_model", "hidden_units"), ("hidden_units", "d_ff")],
)
def test_units_of_the_hidden_layer_are_those_that_no_other_name_has(inputs, between, tmp_path):
    path = tmp_path / "units.py"
    path.write_text(UNITS.format(inputs=inputs, between=between))
    read = attentest.adapted(str(path), "feed_forward")
    said = "".join(read.understood)
    assert f"{inputs}=d_model" in said
    assert f"{between}=d_ff" in said


def test_a_field_that_is_read_at_calls_is_there():
    target, slugs = str(WILD / "published.py:Published"), ["feed_forward.formula"]
    report = attentest.check(target, "feed_forward", clauses=slugs)
    assert "hidden_act='relu'" in "\n".join(report.inferred)
    assert report.conforms, str(report)
    assert report.compared == 1


def test_a_field_that_says_nothing_is_assumed_by_the_numbers_and_can_be_given():
    target = str(WILD / "configured_parts.py:Flavoured")
    read = attentest.adapted(target, "feed_forward")
    assert [one for one in read.assumed if "assumed flavour=False, which" in one]
    slugs = ["feed_forward.formula"]
    report = attentest.check(target, "feed_forward", given={"flavour": 3}, clauses=slugs)
    assert report.conforms, str(report)


def test_sizes_that_are_left_are_assumed_by_the_numbers():
    target = str(WILD / "configured_parts.py:OddNames")
    read = attentest.adapted(target, "feed_forward")
    assert [one for one in read.assumed if "assumed broad as d_model, narrow as d_ff, " in one]
    read = attentest.adapted(
        target, "feed_forward", arguments={"d_model": "broad", "d_ff": "narrow"}
    )
    assert "broad=d_model, narrow=d_ff" in "".join(read.understood)
    rest = attentest.adapted(target, "feed_forward", arguments={"d_model": "broad"})
    assert "broad=d_model, narrow=d_ff" in "".join(rest.understood)


def test_a_configuration_that_is_given_stays_the_object_it_is():
    from configured_parts import Norm, Settings

    backend = attentest.adapted(
        Norm, "layer_norm", given={"settings": Settings(width=12)}, anyway=True
    )
    assert "settings=Settings(width=12, activation='relu')" in "\n".join(backend.understood)


def test_a_reproduction_makes_the_configuration_again(tmp_path):
    text = (WILD / "configured_parts.py").read_text().replace(".relu()", "")
    for name in ("multi_head_attention.py", "parts.py"):
        (tmp_path / name).write_text((WILD / name).read_text())
    folder = write_files(tmp_path, broken=text)
    slugs = ["feed_forward.formula"]
    report = attentest.check(f"{folder}/broken.py:FeedForward", "feed_forward", clauses=slugs)
    verdict = report[slugs[0]]
    assert verdict.status == "violation"
    assert "cfg=dict(emb_dim=" in verdict.counterexample.code
    exec(verdict.counterexample.code, {})


def test_an_import_from_two_folders_up_needs_no_packages(tmp_path):
    folder = write_files(
        tmp_path,
        book__parts__norms="import torch\nONE = torch.ones\n",
        book__models__small__norm=(
            "from torch import nn\n"
            "from ...parts.norms import ONE\n\n"
            "class LayerNorm(nn.LayerNorm):\n"
            "    pass\n"
        ),
    )
    target = f"{folder}/book/models/small/norm.py:LayerNorm"
    report = attentest.check(target, clauses=["layer_norm.formula"])
    assert report.conforms, str(report)


ELIMINATION = """
from torch import nn


class Network(nn.Module):
    def __init__(self, dim, broad, drop=0.1):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(dim, broad), nn.ReLU(), nn.Linear(broad, dim))

    def forward(self, x):
        return self.layers(x)


class Banded(nn.Module):
    def __init__(self, dim, radius):
        super().__init__()
        self.radius = radius
        self.layers = nn.Sequential(nn.Linear(dim, 4 * dim), nn.ReLU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        return self.layers(x)
"""


def test_size_that_is_left_is_given_to_the_argument_that_is_left(tmp_path):
    """The built parameters must have it as an axis: else the argument is another one."""
    file = write_files(tmp_path, elimination=ELIMINATION) / "elimination.py"
    read = attentest.adapted(f"{file}:Network", "feed_forward")
    assert "dim=d_model, broad=d_ff" in "".join(read.understood)
    read = attentest.adapted(f"{file}:Banded", "feed_forward")
    assert [one for one in read.assumed if "assumed radius=False, which" in one]


PRIVATE = """
from dataclasses import dataclass

from torch import nn


@dataclass
class Config:
    hidden_size: int = 8
    intermediate_size: int = 16
    _out_features: list | None = None

    def __post_init__(self):
        if self._out_features is not None and not isinstance(self._out_features, list):
            raise TypeError("a list is needed")


class FeedForward(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.inner = nn.Linear(config.hidden_size, config.intermediate_size)
        self.outer = nn.Linear(config.intermediate_size, config.hidden_size)

    def forward(self, x):
        return self.outer(self.inner(x).relu())
"""


def test_private_fields_of_a_configuration_are_no_sizes(tmp_path):
    folder = write_files(tmp_path, private_fields=PRIVATE)
    backend = attentest.adapted(str(folder / "private_fields.py:FeedForward"))
    assert "_out_features" not in "\n".join(backend.understood)


@pytest.mark.parametrize(
    ("outer", "inner"), [("d_hid", "d_inner_hid"), ("d_in", "d_hid"), ("d_model", "d_hid")]
)
def test_a_hidden_width_beside_another_is_the_outer_or_the_inner_one(outer, inner, tmp_path):
    name = f"widths_{outer}_{inner}"
    text = PRIVATE[PRIVATE.index("class FeedForward") :]
    text = text.replace("config: Config", f"{outer}, {inner}")
    text = text.replace("config.hidden_size", outer).replace("config.intermediate_size", inner)
    folder = write_files(tmp_path, **{name: f"from torch import nn\n\n\n{text}"})
    backend = attentest.adapted(str(folder / f"{name}.py:FeedForward"))
    said = "\n".join(backend.understood)
    assert f"{outer}=d_model" in said
    assert f"{inner}=d_ff" in said
