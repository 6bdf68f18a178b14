"""Constants of the code that are sizes: code that reads them is judged in copies with others."""
