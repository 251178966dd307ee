"""What can speak, and what can value: policies and critics that know no world, no reward and no optimiser."""
