"""The generated pages of the documentation, one module each. Each has a function ``page`` that gives the whole text."""
