import sound

backend = sound.Backend(name="sound")
