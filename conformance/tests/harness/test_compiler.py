"""Torch's compiler is imported where it is used: each test needs a process without it."""

import subprocess
import sys

import pytest
from proof import item

BEGIN = """
import sys
from attentest.harness.compiler import postpone_compiler
postpone_compiler()
import torch

weight = torch.nn.Parameter(torch.ones(2))
optimiser = torch.optim.Adam([weight])

def step():
    optimiser.zero_grad()
    weight.square().sum().backward()
    optimiser.step()

def there():
    return "torch._dynamo.eval_frame" in sys.modules

step()
"""

TRAINED = """
import inspect, warnings
inspect.getmodule(step.__code__)
optimiser.load_state_dict(optimiser.state_dict())
torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1.0).step()
assert weight[0] < 1 and not there()
"""

COMPILED = """
assert not there()
double = torch.compile(lambda x: 2 * x + 1, backend="eager", fullgraph=True)
assert double(torch.ones(2)).tolist() == [3, 3]
assert there()
first = weight.detach().clone()
torch.compile(step, backend="eager")()
step()
assert (weight < first).all()
assert torch._dynamo is sys.modules["torch._dynamo"]
assert hasattr(torch.optim.Optimizer.zero_grad.__wrapped__, "__dynamo_disable")
"""

PART = """
from torch._dynamo.eval_frame import OptimizedModule
import torch._dynamo.eval_frame as again
assert again.OptimizedModule is OptimizedModule is torch._dynamo.OptimizedModule
assert again.__spec__.origin == again.__file__
assert isinstance(torch.compile(torch.nn.Linear(2, 2), backend="eager"), OptimizedModule)
step()
"""

ATTRIBUTE = """
torch._dynamo.reset()
assert there()
assert torch._dynamo.__file__ == sys.modules["torch._dynamo"].__file__
from torch._dynamo import *
step()
"""


@pytest.mark.parametrize(
    "code",
    [
        item(TRAINED, name="trained", unit=True),
        item(COMPILED, name="compiled", unit=False),
        item(PART, name="part", unit=False),
        item(ATTRIBUTE, name="attribute", unit=False),
    ],
)
def test_the_compiler_is_imported_once_it_is_used(code: str) -> None:
    subprocess.run([sys.executable, "-c", BEGIN + code], check=True)
