"""The release of aiokafka whose interface this is."""

__version__ = "0.14.0"

CLIENT_ID = f"aiokafka-{__version__}"
