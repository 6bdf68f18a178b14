"""The import of Keras on its torch backend, without a trace in the environment or on disk.

Keras reads its backend from the environment, and writes a settings file into the home directory if
there is none: with an impossible home it reads and writes none.
"""

import os

_OURS = {"KERAS_BACKEND": "torch", "KERAS_HOME": os.devnull}
_before = {name: os.environ.get(name) for name in _OURS}
os.environ |= _OURS
try:
    import keras
finally:
    for _name, _value in _before.items():
        os.environ.pop(_name)
        if _value is not None:
            os.environ[_name] = _value

if keras.config.backend() != "torch":
    raise ImportError(
        f"Keras runs on {keras.config.backend()} in this process, where it was imported before; "
        f"this backend judges it on torch. Set KERAS_BACKEND=torch."
    )

__all__ = ["keras"]
