"""What is declared right now, versioned and stored; hands out deployment snapshots and changes.

It owns the database with every version since the first, who changed what, who is let in, how changes are proposed and
checked, the copies of deployments on the bus, which engines are alive and what they have adopted, and what a run
reports of itself. It reads declarations with the loaders of their parts. It must not know routers, engines, clients or
commands.

Front door: the names below (Registry, open_registry, Applied, DeclarationOutcome, Object, Key, Kind, KINDS, Version,
Recorded, Principals, Admitted, current_user), `snapshots` (fetch_deployment, fetch_client_names, publish_deployment,
watch_deployments, restore_deployments, keep_published, engine_alive, report_adopted, wait_adopted, fetch_scopes),
`run_metrics` (RunMetrics, decode_metrics, detection_metrics), `past_scopes` (learn_epochs, learn_stored),
`object_files` (declared_in, as_yaml), `objects` (key_of), `changes` (why_suspended), `store` (Epoch), `lookup`
(suspended_names, admitted_names: names without opening the registry).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from situ.model.kinds import KINDS as KINDS
    from situ.model.kinds import Kind as Kind
    from situ.registry.objects import Key as Key
    from situ.registry.objects import Object as Object
    from situ.registry.registry import Applied as Applied
    from situ.registry.registry import DeclarationOutcome as DeclarationOutcome
    from situ.registry.registry import Registry as Registry
    from situ.registry.registry import current_user as current_user
    from situ.registry.registry import open_registry as open_registry
    from situ.registry.store import Admitted as Admitted
    from situ.registry.store import Principals as Principals
    from situ.registry.store import Recorded as Recorded
    from situ.registry.store import Version as Version

_PLACES = {
    "KINDS": "situ.model.kinds",
    "Admitted": "situ.registry.store",
    "Applied": "situ.registry.registry",
    "DeclarationOutcome": "situ.registry.registry",
    "Key": "situ.registry.objects",
    "Kind": "situ.model.kinds",
    "Object": "situ.registry.objects",
    "Principals": "situ.registry.store",
    "Recorded": "situ.registry.store",
    "Registry": "situ.registry.registry",
    "Version": "situ.registry.store",
    "current_user": "situ.registry.registry",
    "open_registry": "situ.registry.registry",
}


def __getattr__(name: str) -> Any:
    # The database takes a third of a second to load, and who looks at what runs needs only what is on the bus.
    if name not in _PLACES:
        raise AttributeError(f"module 'situ.registry' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PLACES[name]), name)
