"""What ``situ.yaml`` says: where and how a project runs."""

from situ.settings.bus import Bus
from situ.settings.kinds import Text
from situ.settings.load import load_settings, settings_from_json
from situ.settings.model import Settings
from situ.settings.write import settings_as_json

__all__ = ["Bus", "Settings", "Text", "load_settings", "settings_as_json", "settings_from_json"]
