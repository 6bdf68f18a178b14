import time

import sound


class Part(sound.Part):
    def train(self):
        sound.announce()
        time.sleep(1000)


class Hanging(sound.Backend):
    def build(self, component, sizes, **_):
        return Part(component, sizes, None)


backend = Hanging(components=("feed_forward",))
