import sys

import sound

backend = sound.Backend(lambda *_: sys.exit(7))
