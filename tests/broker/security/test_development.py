"""The setup of `aiokwire broker --secure`: private files, which a second start reuses."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from aiokwire.broker import PROPERTIES, new_setup, stored_setup
from aiokwire.broker.security import development
from aiokwire.clock import wall_ms
from aiokwire.errors import StorageError


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_second_start_reuses_the_files(tmp_path: Path) -> None:
    first = stored_setup(tmp_path / "a" / "security", ["127.0.0.1"])
    before = _files(tmp_path / "a" / "security")
    assert set(before) == {"ca.pem", "ca-key.pem", "broker.pem", "admin-password", PROPERTIES}
    second = stored_setup(tmp_path / "a" / "security", ["127.0.0.1", "0.0.0.0"])
    assert _files(tmp_path / "a" / "security") == before
    assert (second.authority_pem, second.password) == (first.authority_pem, first.password)


def test_all_of_it_is_private(tmp_path: Path) -> None:
    stored_setup(tmp_path / "a" / "security", [])
    modes = {path.relative_to(tmp_path): stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    directories = {Path("a"), Path("a/security")}
    assert all(mode == (0o700 if path in directories else 0o600) for path, mode in modes.items()), modes


def test_another_host_name_and_an_expiry_renew_the_certificate_but_not_the_authority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_setup(tmp_path, [])
    first = _files(tmp_path)
    stored_setup(tmp_path, ["broker.example"])
    second = _files(tmp_path)
    assert second["broker.pem"] != first["broker.pem"]
    now = wall_ms()
    monkeypatch.setattr(development, "wall_ms", lambda: now + 340 * 86_400_000)
    stored_setup(tmp_path, ["broker.example"])
    third = _files(tmp_path)
    assert third["broker.pem"] != second["broker.pem"]
    assert first["ca.pem"] == second["ca.pem"] == third["ca.pem"]


@pytest.mark.parametrize("name", ["ca-key.pem", "broker.pem"])
def test_a_corrupt_file_is_an_error_that_names_the_remedy(tmp_path: Path, name: str) -> None:
    stored_setup(tmp_path, [])
    (tmp_path / name).write_text("-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----")
    with pytest.raises(StorageError, match=r"are corrupt .* delete the directory"):
        stored_setup(tmp_path, [])


def test_no_text_of_a_setup_contains_its_password() -> None:
    setup = new_setup()
    shown = f"{setup!r} {setup} {setup.listener('127.0.0.1:0')!r}"
    assert setup.password.reveal() not in shown
    assert "PRIVATE KEY" not in shown
