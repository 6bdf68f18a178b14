import sound

backend = sound.Backend(lambda query, key, value, mask: query)
