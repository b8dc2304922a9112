"""``S``: situations, from S121, S221 and S721 on; the lower numbers are those of :mod:`situ.catalogue.sources`.

Entries are written ``NAME = define("S121", …)``, as in the other modules, with
``from situ.catalogue.defining import define``.
"""
