"""Who prefers what: which responses to compare, and simulated judges whose noise is known exactly."""
