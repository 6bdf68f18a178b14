import sound

backend = sound.Backend(lambda *_: input("your name? "))
