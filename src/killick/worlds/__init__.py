"""Tasks whose gold is known exactly: prompts, gold, and the flaw that a proxy can exploit. They know no model."""
