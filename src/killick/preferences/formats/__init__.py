"""What a preference file is made of: its forms, and its lines. `files.py` reads and writes whole files."""
