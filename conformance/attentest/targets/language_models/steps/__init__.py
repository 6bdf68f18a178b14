"""Steps of texts: calls with one token each, first steps with a cache, and trials of programs."""
