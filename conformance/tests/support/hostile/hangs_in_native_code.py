import sound

backend = sound.Backend(lambda *_: 7 ** (10**9))
