"""A program of the stdio protocol, without a library, that misbehaves at one request.

`python stdio_program.py MOMENT`: what it does at that moment is a function below.
"""

import base64
import json
import os
import struct
import sys
import time

ONE = base64.b64encode(struct.pack("<d", 1.0)).decode()
NUMBER = {"dtype": "float64", "shape": [1], "data": ONE}
DESCRIBED = {
    "name": "told",
    "title": "a program",
    "components": ["layer_norm", "feed_forward"],
    "choices": {"norm_epsilon": 1e-6},
    "limits": {"heads": 4, "precisions": ["float64"], "dropout": False},
    "capabilities": ["gradient", "mode"],
}
SOUND = {
    "start": {"protocol": 1},
    "describe": DESCRIBED,
    "build": {"part": 7},
    "load": {},
    "export": {"parameters": {"gain": NUMBER}},
    "call": {"outputs": [NUMBER]},
    "vjp": {"output": NUMBER, "inputs": [NUMBER, None], "parameters": {"gain": NUMBER}},
    "train": {},
    "eval": {},
    "release": {},
}


def error(kind):
    return {"error": {"kind": kind, "message": "7 is too much"}}


def number(**other):
    return {"outputs": [{**NUMBER, **other}]}


def says(text):
    return lambda: (sys.stdout.write(text), sys.stdout.flush())


def dies():
    print("all was well\nout of luck", file=sys.stderr)
    sys.exit(3)


def forever(write):
    while True:
        write("x" * 2**16)


ANSWERS = {
    "another_protocol": ("start", {"protocol": 2}),
    "no_protocol": ("start", {}),
    "no_name": ("describe", {}),
    "odd_title": ("describe", {**DESCRIBED, "title": 5}),
    "odd_component": ("describe", {**DESCRIBED, "components": ["layer_nrm"]}),
    "odd_limit": ("describe", {**DESCRIBED, "limits": {"head": 4}}),
    "odd_heads": ("describe", {**DESCRIBED, "limits": {"heads": "four"}}),
    "odd_memory_mask": ("describe", {**DESCRIBED, "limits": {"memory_masks": ["paddin"]}}),
    "odd_precision": ("describe", {**DESCRIBED, "limits": {"precisions": ["float65"]}}),
    "odd_capability": ("describe", {**DESCRIBED, "capabilities": ["grad"]}),
    "odd_handle": ("build", {"part": None}),
    "value": ("call", error("value")),
    "index": ("call", error("index")),
    "type": ("call", error("type")),
    "unsupported": ("call", error("unsupported")),
    "internal": ("call", error("internal")),
    "odd_kind": ("call", error("odd")),
    "odd_error": ("call", {"error": "no"}),
    "no_outputs": ("call", {"outputs": []}),
    "short": ("call", number(shape=[3])),
    "negative": ("call", number(shape=[-1])),
    "odd_dtype": ("call", number(dtype="float8")),
    "odd_data": ("call", number(data="&&&")),
    "odd_tensor": ("call", {"outputs": [[1.0]]}),
    "odd_bool": ("call", number(dtype="bool", shape=[8])),
    "other_id": ("call", {"id": 99, "outputs": [NUMBER]}),
    "knows_no_release": ("release", error("internal")),
    "weights": ("call", {"outputs": [NUMBER, None]}),
}
ACTS = {
    "garbage": ("call", says("loading weights..\n")),
    "list": ("call", says("[1]\n")),
    "deep": ("call", says("[" * 100_000 + "\n")),
    "extra": ("call", says('{"id": 4, "outputs": []}\n{"id": 4}\n')),
    "dies": ("call", dies),
    "dies_at_start": ("start", dies),
    "killed": ("call", lambda: os.kill(os.getpid(), 9)),
    "hangs": ("call", lambda: time.sleep(600)),
    "hangs_at_start": ("start", lambda: time.sleep(600)),
    "floods": ("call", lambda: forever(sys.stdout.write)),
    "complains": ("call", lambda: forever(lambda text: sys.stderr.write(text + "\n"))),
    "chatters": ("call", lambda: sys.stderr.write("chatter\n" * 2**19)),
    "closes": ("call", lambda: (os.close(1), time.sleep(600))),
    "deaf_at_stop": ("stop", lambda: time.sleep(600)),
}


def main(moment):
    at, answer = ANSWERS.get(moment, ("", {}))
    act_at, act = ACTS.get(moment, ("", None))
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["do"] == act_at:
            act()
        if asked["do"] == "stop":
            break
        fields = answer if asked["do"] == at else SOUND[asked["do"]]
        print(json.dumps({"id": asked["id"], **fields}), flush=True)
        if moment == "reads_no_more" and asked["do"] == "build":
            time.sleep(600)


if __name__ == "__main__":
    main(sys.argv[1])
