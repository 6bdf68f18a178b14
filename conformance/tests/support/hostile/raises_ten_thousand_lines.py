import sound


def deep(levels):
    if levels == 0:
        raise ValueError("\n".join(f"line {number} of the message" for number in range(10_000)))
    try:
        deep(levels - 1)
    except ValueError as cause:
        raise ValueError(str(cause)) from cause


backend = sound.Backend(lambda *_: deep(100))
