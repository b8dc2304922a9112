"""Actions: what is declared, what a policy asks for, and what is to be done when it has detected something."""
