"""Repeat the attacks of the security review, and compare what each costs with its bar.

    python -m integration.attacks [V3 V13 ...]

Each attack on the broker has its own broker process and another client beside it; attacks on
clients come from a hostile broker process. Prints a table; the exit status is 1 if a bar is broken.
"""

from __future__ import annotations

import argparse
import gc

import uvloop
from rich.console import Console
from rich.table import Table

from integration.attacks import on_broker, on_client, on_directory, on_logins, target
from integration.attacks.figures import Figure, faults
from integration.fuzz import fuzz_requests

BROKER_ATTACKS = on_broker.ATTACKS | on_directory.ATTACKS | on_logins.ATTACKS
# What the broker of an attack is started with.
SETTINGS: dict[str, dict[str, object]] = {
    "V16": {"max.connections.per.ip": on_broker.PER_ADDRESS},
    "V16b": {"connections.max.reauth.ms": round(on_logins.SESSION * 1000)},
}
FUZZED = 20_000  # requests


async def fuzz() -> list[Figure]:
    """R10: malformed requests before a login, over TLS, and after one."""
    found = {security: await fuzz_requests(FUZZED, 8, 1, security) for security in ("", "tls", "login")}
    return [faults(f"found, {security or 'plain'}", len(texts)) for security, texts in found.items()]


CLIENT_ATTACKS = on_client.ATTACKS | {"R10": fuzz}
KNOWN = [*BROKER_ATTACKS, *CLIENT_ATTACKS]


def measure(name: str) -> list[Figure]:
    """Run one attack on its own event loop."""
    gc.collect()
    attack = BROKER_ATTACKS.get(name)
    if attack is None:
        gc.freeze()  # collections must not go through what this command has loaded
        try:
            return uvloop.run(CLIENT_ATTACKS[name]())
        finally:
            gc.unfreeze()
    return uvloop.run(target.run(attack, SETTINGS.get(name, {}), secure=name in on_logins.ATTACKS))


def _number(name: str) -> tuple[str, int, str]:
    """Return the order of a name: by its letter, its number, then the rest."""
    digits = "".join(character for character in name if character.isdigit())
    return name[0], int(digits), name.lstrip(name[0] + digits)


def main() -> None:
    """Run the attacks that the command line names; without names all."""
    known = sorted(KNOWN, key=_number)
    parser = argparse.ArgumentParser(prog="python -m integration.attacks", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}; default: all")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in known]
    if unknown:
        parser.error(f"no attack {', '.join(unknown)}; there are {', '.join(known)}")
    console = Console(width=110)
    table = Table("attack", "figures", "bars", "")
    broken = 0
    for name in given.names or known:
        figures = measure(name)
        failed = [figure for figure in figures if not figure.is_held]
        broken += bool(failed)
        bars = ", ".join(figure.bar_text for figure in figures)
        verdict = "does not hold: " + ", ".join(figure.what for figure in failed) if failed else "holds"
        table.add_row(name, ", ".join(figure.text for figure in figures), bars, verdict)
        console.print(f"{name}: {', '.join(figure.text for figure in figures)}: {verdict}")
    console.print(table)
    raise SystemExit(broken > 0)


if __name__ == "__main__":
    main()
