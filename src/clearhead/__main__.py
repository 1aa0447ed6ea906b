"""``python -m clearhead``: the command line."""

from clearhead.cli.start import main

if __name__ == "__main__":
    main()
