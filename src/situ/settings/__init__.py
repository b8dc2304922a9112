"""What ``situ.yaml`` says: where and how a project runs."""

from situ.settings.kinds import Bus, Text
from situ.settings.model import Settings, load_settings, settings_as_json, settings_from_json

__all__ = ["Bus", "Settings", "Text", "load_settings", "settings_as_json", "settings_from_json"]
