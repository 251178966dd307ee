"""One run = one folder: settings, ledger, checkpoints, and a cache for stages. The rooms never come here."""
