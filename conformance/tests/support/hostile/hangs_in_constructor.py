import time

import sound


class Hanging(sound.Backend):
    def build(self, *_, **__):
        time.sleep(1000)


backend = Hanging()
