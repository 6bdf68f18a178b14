raise RuntimeError("no luck today")
