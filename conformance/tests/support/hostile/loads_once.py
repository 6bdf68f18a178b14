"""Can be loaded one time and never again."""

import os
from pathlib import Path

import sound

flag = Path(os.environ["HOSTILE_FLAG"])
if flag.exists():
    raise RuntimeError("only once")
flag.touch()

backend = sound.Backend(lambda *_: os._exit(3))
