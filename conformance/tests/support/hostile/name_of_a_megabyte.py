import sound

backend = sound.Backend(name="n" * 2**20)
backend.title = "t" * 2**20
