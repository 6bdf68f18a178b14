import ctypes

import sound

backend = sound.Backend(lambda *_: ctypes.string_at(0))
