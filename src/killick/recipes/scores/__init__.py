"""What text may be scored by: folder, function, formula, server, people."""
