"""One immutable snapshot of everything declared: what engines execute."""

from situ.deployment.difference import Change, Detail, difference
from situ.deployment.snapshot import Deployment, canonical

__all__ = ["Change", "Deployment", "Detail", "canonical", "difference"]
