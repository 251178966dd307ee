"""killick: RLHF from preferences to policy, with the anchor in view."""
