import sound


class Endless:
    def __getattr__(self, name):
        return self

    def __iter__(self):
        while True:
            yield self


backend = sound.Backend(lambda *_: Endless())
