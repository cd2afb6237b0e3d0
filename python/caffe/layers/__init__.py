"""The layer types: what each is called in prototxt and how one is made.

`native` makes the layers whose arithmetic is C++; the other modules here are layers in Python on
NumPy, on the same interface as users' own Python layers.
"""
