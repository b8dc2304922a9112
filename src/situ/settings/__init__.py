"""What ``situ.yaml`` says: where and how a project runs.

It owns every key with its kind and default, how the file is read and written back, and its JSON Schema. Values from the
environment stay references in what is stored. It must not know what a setting does: that belongs to the parts that the
settings are for.

Front door: the names below (Settings, load_settings, settings_as_json, settings_from_json, BusSettings, Text), `model`
(Defaults, settings_schema, PROJECT_NAME).
"""

from situ.settings.kinds import BusSettings, Text
from situ.settings.model import Settings, load_settings, settings_as_json, settings_from_json

__all__ = ["BusSettings", "Settings", "Text", "load_settings", "settings_as_json", "settings_from_json"]
