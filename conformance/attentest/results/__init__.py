"""Data about backends and the files it is kept in: verdicts, runs, streams, their wording."""
