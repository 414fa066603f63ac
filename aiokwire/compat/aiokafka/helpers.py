"""`create_ssl_context`, as in aiokafka."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from os import PathLike

log: logging.Logger = logging.getLogger(__name__)

_Path = str | bytes | PathLike[str] | PathLike[bytes]


def create_ssl_context(
    *,
    cafile: _Path | None = None,
    capath: _Path | None = None,
    cadata: str | bytes | bytearray | memoryview | None = None,
    certfile: _Path | None = None,
    keyfile: _Path | None = None,
    password: Callable[[], str | bytes | bytearray] | str | bytes | bytearray | None = None,
) -> ssl.SSLContext:
    """Return a context that verifies brokers' certificates and host names.

    The authorities are those in `cafile`, `capath` or `cadata`, else the system's. `certfile`,
    `keyfile` and `password` are the client's certificate.

    Raises: OSError, ssl.SSLError: a file cannot be read.
    """
    if cafile or capath:
        log.info("loading certificate authorities from %s", cafile or capath)
    elif cadata is not None:
        log.info("loading certificate authorities from cadata")
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=cafile, capath=capath, cadata=cadata)
    if certfile is not None:
        log.info("loading the client's certificate from %s", certfile)
        context.load_cert_chain(certfile, keyfile, password)
    return context
