"""``python -m dpcausal.cli`` is the command."""

from dpcausal.cli import main

if __name__ == "__main__":
    main()
