import os

import sound

backend = sound.Backend(lambda *_: os._exit(3))
