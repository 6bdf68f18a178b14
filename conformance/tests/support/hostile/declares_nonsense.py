import sound

backend = sound.Backend()
backend.choices = {"activation": "\x1b[31mrelu", "no_such_choice": object()}
