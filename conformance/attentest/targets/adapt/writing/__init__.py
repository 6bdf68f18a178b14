"""Python code about inferred adapters: values, reproductions and files of backends."""
