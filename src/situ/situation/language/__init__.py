"""The language of policies: text → tree → text, and what to say of mistakes."""
