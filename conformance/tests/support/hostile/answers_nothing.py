import sound

backend = sound.Backend(lambda *_: None)
