"""Parts of decoder-only models that are judged inside of a whole one."""
