import sound

backend = sound.Backend(lambda *_: [1.0, 2.0])
