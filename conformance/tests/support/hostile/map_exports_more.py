import numpy as np
import sound


class Part(sound.Part):
    def export(self):
        return {**self.parameters, "gate": np.ones(2)}


class Exporting(sound.Backend):
    def build(self, component, sizes, **_):
        return Part(component, sizes, None)


backend = Exporting(components=("multi_head_attention",))
