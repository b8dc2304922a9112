"""The catalogue of codes: every problem Situ can report, each said once, in the module of its part.

Prefixes: ``P`` project and command line, ``X`` expressions, ``E`` envelope and decoding, ``B`` bus, ``R`` overlay and
client library, ``D`` deployment, ``N`` engines, ``S`` sources and situations, ``INT`` interpretation (types and units
belong to it), ``V`` visibility, ``Q`` quality. 1xx refuse a declaration or command, 2xx warn, 7xx are dead letters; of
``V`` 0xx refuse and 1xx warn. A code is never reused for something else.

What a module here defines is imported from ``situ.lang.catalogue``; the reference page of all codes is generated from
it.
"""

from situ.lang.catalogue.contexts import *
from situ.lang.catalogue.ontology import *
from situ.lang.catalogue.policies import *
from situ.lang.catalogue.project import *
from situ.lang.catalogue.quality import *
from situ.lang.catalogue.runtime import *
from situ.lang.catalogue.scopes import *
from situ.lang.catalogue.types import *
from situ.lang.problems import CODES as CODES
