"""The domain that policies speak of: concepts, relationships, and which sources tell of them."""
