import threading
from dataclasses import replace

from attentest.faults.reference_models import Plain, reference_backend

plain = reference_backend(Plain)


def locked(sizes):
    model = plain.recipes["model"].build(sizes)
    model.lock = threading.Lock()
    return model


backend = replace(plain, recipes={"model": replace(plain.recipes["model"], build=locked)})
