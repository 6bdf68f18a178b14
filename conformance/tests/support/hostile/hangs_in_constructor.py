import time

import sound


class Hanging(sound.Backend):
    def build(self, *_, **__):
        sound.announce()
        time.sleep(1000)


backend = Hanging()
