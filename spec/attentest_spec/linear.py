"""The linear map that several components are made of."""

from typing import Annotated

from attentest_spec.setting import Floats, Setting


def linear(
    given: Setting, name: str, x: Annotated[Floats, "*rows inputs"]
) -> Annotated[Floats, "*rows outputs"]:
    """Return x W^T + b for the weight (outputs, inputs) and the bias (outputs,) under `name`.

    x (.., inputs) gives (.., outputs). An empty `name` takes the component's own `weight` and
    `bias`; a bias that is not there counts as zero.
    """
    prefix = f"{name}." if name else ""
    product: Floats = x @ given[f"{prefix}weight"].T
    bias = given.get(f"{prefix}bias")
    result = product if bias is None else product + bias
    if name and given.observe:
        given.under(name).report((x,), result)
    return result
