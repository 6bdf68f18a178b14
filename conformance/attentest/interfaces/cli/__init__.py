"""The subcommands of `attentest`, one module each."""
