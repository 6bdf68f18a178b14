"""A layer norm as a program for the stdio protocol, with the standard library only."""

import base64
import json
import struct
import sys
from math import sqrt

EPSILON = 1e-5
DESCRIPTION = {
    "name": "plain-python",
    "title": "a layer norm without a library",
    "components": ["layer_norm"],
    "choices": {"norm_epsilon": EPSILON},
    "limits": {"precisions": ["float64"]},
}
parts = []


def numbers(tensor):
    """Return the numbers of a tensor."""
    return [number for (number,) in struct.iter_unpack("<d", base64.b64decode(tensor["data"]))]


def tensor(shape, values):
    """Return a tensor of `shape` with `values`."""
    data = base64.b64encode(struct.pack(f"<{len(values)}d", *values)).decode()
    return {"dtype": "float64", "shape": shape, "data": data}


def normalised(row, gain, bias):
    """Return gain * (row - mean) / sqrt(variance + epsilon) + bias."""
    mean = sum(row) / len(row)
    mean += sum(x - mean for x in row) / len(row)  # corrects the rounding of the first sum
    variance = sum((x - mean) ** 2 for x in row) / len(row)
    scale = sqrt(variance + EPSILON)
    return [g * (x - mean) / scale + b for x, g, b in zip(row, gain, bias, strict=True)]


def build(request):
    """Create a part, with weights of 1 and biases of 0."""
    width = request["sizes"]["d_model"]
    parts.append({"gain": tensor([width], [1.0] * width), "bias": tensor([width], [0.0] * width)})
    return {"part": len(parts) - 1}


def load(request):
    """Set the parameters; refuse other names and shapes."""
    own, given = parts[request["part"]], request["parameters"]
    for name in own.keys() | given.keys():
        if given.get(name, {}).get("shape") != own.get(name, {}).get("shape"):
            raise ValueError(f"{name} is missing, unknown, or of another shape.")
    own.update(given)
    return {}


def call(request):
    """Normalise every row of x."""
    (x,), own = request["inputs"], parts[request["part"]]
    gain, bias, values = numbers(own["gain"]), numbers(own["bias"]), numbers(x)
    rows = [values[start : start + len(gain)] for start in range(0, len(values), len(gain))]
    output = [number for row in rows for number in normalised(row, gain, bias)]
    return {"outputs": [tensor(x["shape"], output)]}


ANSWERS = {
    "start": lambda request: {"protocol": 1},
    "describe": lambda request: DESCRIPTION,
    "build": build,
    "load": load,
    "export": lambda request: {"parameters": parts[request["part"]]},
    "call": call,
    "release": lambda request: {},
}

for line in sys.stdin:
    request = json.loads(line)
    if request["do"] == "stop":
        break
    try:
        answer = ANSWERS[request["do"]](request)
    except ValueError as error:
        answer = {"error": {"kind": "value", "message": str(error)}}
    except Exception as error:
        answer = {"error": {"kind": "internal", "message": repr(error)}}
    print(json.dumps({"id": request["id"], **answer}), flush=True)
