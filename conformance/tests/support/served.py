"""Any backend as a program of the stdio protocol: `python served.py TARGET`."""

import json
import sys
from contextlib import redirect_stdout
from typing import Any

from attentest.targets import resolve
from attentest_spec import Sizes, Unsupported
from attentest_spec.stdio.tensors import decode, encode

KINDS = {
    ValueError: "value",
    IndexError: "index",
    TypeError: "type",
    Unsupported: "unsupported",
}


class Served:
    """The backend, and the parts that were asked for."""

    def __init__(self, target: str) -> None:
        self.backend = resolve.load(target)
        self.parts: dict[int, Any] = {}

    def start(self, protocol):
        return {"protocol": protocol}

    def describe(self):
        limits = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in vars(self.backend.limits).items()
        }
        return {
            "name": self.backend.name,
            "title": self.backend.title,
            "components": list(self.backend.components),
            "choices": dict(self.backend.choices),
            "limits": limits,
            "capabilities": ["gradient", "mode"],
        }

    def build(self, component, sizes, precision):
        handle = len(self.parts)
        self.parts[handle] = self.backend.build(component, Sizes(**sizes), precision=precision)
        return {"part": handle}

    def load(self, part, parameters):
        self.parts[part].load(arrays(parameters))
        return {}

    def export(self, part):
        return {"parameters": tensors(self.parts[part].export())}

    def call(self, part, inputs, method):
        found = self.parts[part](*map(taken, inputs), method=method)
        return {"outputs": [given(one) for one in (found if isinstance(found, tuple) else [found])]}

    def vjp(self, part, inputs, cotangent):
        found = self.parts[part].vjp(tuple(map(taken, inputs)), decode(cotangent))
        return {
            "output": encode(found.output),
            "inputs": [given(one) for one in found.inputs],
            "parameters": tensors(found.parameters),
        }

    def train(self, part):
        self.parts[part].train()
        return {}

    def eval(self, part):
        self.parts[part].eval()
        return {}

    def release(self, parts):
        for one in parts:
            self.parts[one] = None
        return {}


def taken(value):
    return decode(value) if isinstance(value, dict) else value


def given(array):
    return None if array is None else encode(array)


def tensors(named):
    return {name: encode(one) for name, one in named.items()}


def arrays(named):
    return {name: decode(one) for name, one in named.items()}


def main() -> None:
    channel = sys.stdout
    with redirect_stdout(sys.stderr):
        served = Served(sys.argv[1])
        for line in sys.stdin:
            asked = json.loads(line)
            number, do = asked.pop("id"), asked.pop("do")
            if do == "stop":
                break
            try:
                told = getattr(served, do)(**asked)
            except Exception as failure:
                kinds = [name for kind, name in KINDS.items() if isinstance(failure, kind)]
                told = {"error": {"kind": (kinds or ["internal"])[0], "message": str(failure)}}
            print(json.dumps({"id": number, **told}), file=channel, flush=True)


if __name__ == "__main__":
    main()
