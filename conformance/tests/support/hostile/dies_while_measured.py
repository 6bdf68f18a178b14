import os

import sound


class Part(sound.Part):
    def train(self):
        os._exit(9)


class Dying(sound.Backend):
    def build(self, component, sizes, **_):
        return Part(component, sizes, None)


backend = Dying(components=("feed_forward",))
