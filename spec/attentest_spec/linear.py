"""The linear map that several components are made of."""

from attentest_spec.setting import Floats, Setting


def linear(given: Setting, name: str, x: Floats) -> Floats:
    """Return x W^T + b for the weight (out, in) and the bias (out,) under `name`.

    x (.., in) gives (.., out). An empty `name` takes the component's own `weight` and `bias`; a
    bias that is not there counts as zero.
    """
    own = given.under(name) if name else given
    product: Floats = x @ own["weight"].T
    bias = own.get("bias")
    result = product if bias is None else product + bias
    if name:
        own.report((x,), result)
    return result
