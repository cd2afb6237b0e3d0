"""The layer types: what each is called in prototxt and how one is made.

`native` makes the layers whose arithmetic is C++; most other modules here are layers in Python
on NumPy, on the interface of users' own Python layers and what `builtin` adds to it.
"""
