"""A layer norm behind the stdio protocol, without any library."""

import base64
import json
import struct
import sys
from math import sqrt

EPSILON = 1e-5
DESCRIBED = {
    "name": "plain-python",
    "title": "a layer norm without a library",
    "components": ["layer_norm"],
    "choices": {"norm_epsilon": EPSILON},
    "limits": {"precisions": ["float64"]},
}
parts = []


def numbers(tensor):
    """Return the numbers of a tensor."""
    return [one for (one,) in struct.iter_unpack("<d", base64.b64decode(tensor["data"]))]


def tensor(shape, values):
    """Return a tensor of `shape` that holds `values`."""
    data = base64.b64encode(struct.pack(f"<{len(values)}d", *values)).decode()
    return {"dtype": "float64", "shape": shape, "data": data}


def normalised(row, gain, bias):
    """Return gain * (row - mean) / sqrt(variance + epsilon) + bias."""
    mean = sum(row) / len(row)
    mean += sum(one - mean for one in row) / len(row)  # what rounding left of it
    variance = sum((one - mean) ** 2 for one in row) / len(row)
    scale = sqrt(variance + EPSILON)
    return [g * (one - mean) / scale + b for one, g, b in zip(row, gain, bias, strict=True)]


def build(asked):
    """Make a part, with gains of 1 and biases of 0."""
    width = asked["sizes"]["d_model"]
    parts.append({"gain": tensor([width], [1.0] * width), "bias": tensor([width], [0.0] * width)})
    return {"part": len(parts) - 1}


def load(asked):
    """Take the parameters, and refuse other names and shapes."""
    held, given = parts[asked["part"]], asked["parameters"]
    for name in held.keys() | given.keys():
        if given.get(name, {}).get("shape") != held.get(name, {}).get("shape"):
            raise ValueError(f"{name} is missing, unknown, or of another shape.")
    held.update(given)
    return {}


def call(asked):
    """Normalise every row of x."""
    (x,), held = asked["inputs"], parts[asked["part"]]
    gain, bias, values = numbers(held["gain"]), numbers(held["bias"]), numbers(x)
    rows = [values[start : start + len(gain)] for start in range(0, len(values), len(gain))]
    found = [one for row in rows for one in normalised(row, gain, bias)]
    return {"outputs": [tensor(x["shape"], found)]}


ANSWERS = {
    "start": lambda asked: {"protocol": 1},
    "describe": lambda asked: DESCRIBED,
    "build": build,
    "load": load,
    "export": lambda asked: {"parameters": parts[asked["part"]]},
    "call": call,
    "release": lambda asked: {},
}

for line in sys.stdin:
    asked = json.loads(line)
    if asked["do"] == "stop":
        break
    try:
        answer = ANSWERS[asked["do"]](asked)
    except ValueError as wrong:
        answer = {"error": {"kind": "value", "message": str(wrong)}}
    except Exception as wrong:
        answer = {"error": {"kind": "internal", "message": repr(wrong)}}
    print(json.dumps({"id": asked["id"], **answer}), flush=True)
