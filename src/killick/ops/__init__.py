"""Pure arithmetic on tensors and floats: no dataclass of the house, no file, no model, no random number of its own."""
