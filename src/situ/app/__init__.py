"""One process of a deployment: it holds the folder, and in it run the bus, the registry, the router and an engine."""
