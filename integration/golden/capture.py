"""Capture the requests and responses of a broker as hex files: every API in every version.

    python -m integration.golden.capture RELEASE... [--into DIRECTORY]

Starts each release in turn (see `integration.kafka`), sends every request that it advertises, and
writes `DIRECTORY/RELEASE/<Api>_v<N>_{request,response}.hex`: frames without their size.
`tests/protocol/test_golden.py` reads them. The requests come from our own encoder; the response
validates them, because a broker closes the connection on a request that it cannot parse.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from aiokwire.protocol import ApiKey, request_type
from integration.golden.asker import Asker, NoAnswer
from integration.golden.requests import Requests
from integration.kafka.server import RealKafka

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "protocol" / "golden"
# Sent last, because they delete what the other requests need.
LAST = (ApiKey.DELETE_RECORDS, ApiKey.OFFSET_DELETE, ApiKey.DELETE_GROUPS, ApiKey.DELETE_TOPICS)


def capture(host: str, port: int, directory: Path, *, hide: str) -> list[str]:
    """Write the files of one broker and return the requests without a response.

    Each occurrence of the path `hide` (the broker's data directory) is replaced by neutral bytes of
    the same length.
    """
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    unanswered = []
    with Asker(host, port) as asker:
        requests = Requests(asker)
        served = sorted(asker.served.items(), key=lambda item: (item[0] in LAST, item[0]))
        for key, (low, high) in served:
            if key not in set(ApiKey):
                unanswered.append(f"API {key} is not known here")
                continue
            kind = request_type(key)
            for version in range(max(low, kind.VERSIONS.min), min(high, kind.VERSIONS.max) + 1):
                name = f"{kind.__name__.removesuffix('Request')}_v{version}"
                try:
                    asked, answered = asker.exchange(requests.make(kind, version), version)
                except NoAnswer as error:
                    unanswered.append(f"{name}: {error}")
                    continue
                for what, frame in (("request", asked), ("response", answered)):
                    text = frame.replace(hide.encode(), b"/" + b"x" * (len(hide) - 1)).hex()
                    lines = "\n".join(text[start : start + 120] for start in range(0, len(text), 120))
                    (directory / f"{name}_{what}.hex").write_text(lines + "\n")
    return unanswered


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m integration.golden.capture")
    parser.add_argument("release", nargs="+")
    parser.add_argument("--into", type=Path, default=GOLDEN)
    options = parser.parse_args()
    for release in options.release:
        with RealKafka(release) as server:
            directory = options.into / release
            unanswered = capture("127.0.0.1", server.port, directory, hide=str(server.data_dir))
        print(f"{release}: {len(list(directory.iterdir())) // 2} exchanges")
        for line in unanswered:
            print(f"  no response: {line}")


if __name__ == "__main__":
    main()
