"""How a mistake that encoder and decoder can both hold is written: once, for the two of them."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from attentest.faults.fault import Kind, Override, fault
from attentest.specimens import Seams
from attentest_spec.choices import Value

Said = str | tuple[str, str]

SIDES = ("encoder", "decoder")


def twins(
    name: str,
    *,
    clause: str,
    wrong: Said,
    effect: Said,
    origin: str = "own",
    choices: Mapping[str, Value] | None = None,
    kind: Kind = "value",
    in_layer: bool = False,
) -> Callable[[Override], Override]:
    """Register the decorated function as the fault `name` of the encoder and of the decoder.

    Its own name is the seam, with `stack` for the side: `stack`, `make_stack`, `stack_layer`; or
    one that both layers call, which stays sound for the other side. It is given the specimen, the
    sound seam, and then what the seam is given. What is said of the two sides in unlike words is
    a pair. `in_layer` says that it changes the layer, where the clause is one of the stack.
    """

    def register(body: Override) -> Override:
        for number, side in enumerate(SIDES):
            fault(
                f"{side}.{name}",
                clause=f"{side}.{clause}",
                wrong=wrong if isinstance(wrong, str) else wrong[number],
                effect=effect if isinstance(effect, str) else effect[number],
                origin=origin,
                choices=choices,
                kind=kind,
                components=(f"{side}_layer",) if in_layer else (),
            )(_override(body, side))
        return body

    return register


def _override(body: Override, side: str) -> Override:
    """Return `body` as the override of a seam of one side."""
    seam = body.__name__.replace("stack", side)
    common = seam == body.__name__

    @wraps(body)
    def override(self: Seams, *inputs: Any) -> Any:
        sound = getattr(self.sound, seam)
        if common and inputs[0].step != f"{side}_layer":
            return sound(*inputs)
        return body(self, sound, *inputs)

    override.__name__ = seam
    return override
