"""One backend under test: guarded calls, recording, replay, processes, tolerances."""
