"""The executable specification of the Transformer, in prose, clauses and NumPy.

Nothing here needs a deep-learning framework, except the adapters :mod:`attentest_spec.torch` and
:mod:`attentest_spec.jax`, through which implementations meet the contract.
"""

from attentest_spec.choices import CHOICES, PAPER, Choice, Choices, Option
from attentest_spec.clauses import Clause
from attentest_spec.components import COMPONENTS, Component
from attentest_spec.contract import (
    Backend,
    Configurable,
    Counted,
    Gradient,
    Incremental,
    Limits,
    Part,
    Stateful,
    Step,
    Traceable,
    Unsupported,
)
from attentest_spec.mapping import Place, Table, nested
from attentest_spec.names import UnknownName
from attentest_spec.setting import Setting
from attentest_spec.sizes import Sizes

__version__ = "0.1.0"

__all__ = [
    "CHOICES",
    "COMPONENTS",
    "PAPER",
    "Backend",
    "Choice",
    "Choices",
    "Clause",
    "Component",
    "Configurable",
    "Counted",
    "Gradient",
    "Incremental",
    "Limits",
    "Option",
    "Part",
    "Place",
    "Setting",
    "Sizes",
    "Stateful",
    "Step",
    "Table",
    "Traceable",
    "UnknownName",
    "Unsupported",
    "nested",
]
