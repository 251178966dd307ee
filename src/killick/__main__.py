"""`python -m killick` is the `killick` command."""

from killick.cli import main

if __name__ == "__main__":
    main()
