"""Who gets an event: what clients advertise, what they subscribe to, and the table that finds subscriptions for events.

It owns clients with their advertisements and subscriptions as declared, compiled filters with their index, and delivery
groups. It knows expressions, types and event rows. It must not know contexts, scopes, policies or quality: what it asks
of them are the protocols `FilterRewriter`, `VisibilityCheck` and `AdvertisementPromises`. No input or output.

Front door: `model` (ClientDeclaration, Advertisement, Subscription, Clients, NAME, ROOT, not_of_type), `load`
(load_clients, client_names), `filter` (Filter, read_filter), `normal_form` (contradict and the atoms), `filter_index`
(TypeIndex), `pruned_index` (AdvertisementPromises), `covering` (wanted_events, covers, CoveringTable),
`delivery_groups` (DeliveryGroup, group_of, FilterReader), `routing_table` (compile_routing, RoutingTable, RoutedRows),
`visibility` (VisibilityKey).
"""

from situ.routing.model import Advertisement, ClientDeclaration, Clients, Subscription

__all__ = ["Advertisement", "ClientDeclaration", "Clients", "Subscription"]
