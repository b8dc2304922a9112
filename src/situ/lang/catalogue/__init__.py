"""The catalogue of codes: every problem Situ can report, each said once, in the module of its part.

Prefixes: ``P`` project and command line, ``X`` expressions, ``E`` envelope and decoding, ``B`` bus, ``R`` overlay and
client library, ``D`` deployment, ``N`` engines, ``S`` sources and situations, ``INT`` interpretation (types and units
belong to it), ``V`` visibility, ``Q`` quality. 1xx refuse a declaration or command, 2xx warn, 7xx are dead letters; of
``V`` 0xx refuse and 1xx warn. A code is never reused for something else.

What a module here defines is imported from ``situ.catalogue``; the reference page of all codes is generated from it.
"""

from situ.catalogue.bus import *
from situ.catalogue.clients import *
from situ.catalogue.command_line import *
from situ.catalogue.contexts import *
from situ.catalogue.defining import CODES as CODES
from situ.catalogue.engines import *
from situ.catalogue.enrichment import *
from situ.catalogue.envelope import *
from situ.catalogue.expressions import *
from situ.catalogue.ontology import *
from situ.catalogue.overlay import *
from situ.catalogue.policies import *
from situ.catalogue.policy_checks import *
from situ.catalogue.project import *
from situ.catalogue.quality import *
from situ.catalogue.registry import *
from situ.catalogue.situation import *
from situ.catalogue.sources import *
from situ.catalogue.transformations import *
from situ.catalogue.trying import *
from situ.catalogue.types import *
from situ.catalogue.visibility import *
