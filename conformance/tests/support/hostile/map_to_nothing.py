from projections import backend_with

backend = backend_with(value="values")
