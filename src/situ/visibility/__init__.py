"""Who may see an event: scopes in several dimensions, and filters at their boundaries."""
