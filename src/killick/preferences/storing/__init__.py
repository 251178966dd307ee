"""How a store keeps labels: tables, one writer, and what is read back. `store.py` has the verbs."""
