"""Sound code that has what the specification does not describe: recognised, and asked about."""
