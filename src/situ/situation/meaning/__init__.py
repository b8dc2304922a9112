"""What a policy means: the reference, event time, situations, and explanations of both."""
