import sound

backend = sound.Backend(name="../../etc/passwd\\..\\x\x00")
