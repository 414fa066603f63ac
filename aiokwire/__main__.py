"""`python -m aiokwire` does what the command `aiokwire` does."""

from aiokwire.cli import main

if __name__ == "__main__":
    main()
