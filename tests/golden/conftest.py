"""Golden tests find their fixture here."""

from tests.golden_files import golden

__all__ = ["golden"]
