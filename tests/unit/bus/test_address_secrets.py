"""Addresses for processes on other machines: they name secrets, and whoever connects finds them there."""

from __future__ import annotations

from pathlib import Path

import pytest

from situ.bus.address import Address
from situ.bus.credentials import admission
from situ.lang.problems import SituError


@pytest.fixture
def address(tmp_path: Path) -> Address:
    (tmp_path / "token").write_text("hush\n")
    return Address(zone="main", servers=("nats://host:4222",), token_file=str(tmp_path / "token"))


def test_secrets_travel_beside_the_address(address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    sent, variables = address.without_secrets(files=True)
    assert "hush" not in sent.to_json()
    assert variables == {"SITU_SECRET_TOKEN": "hush"}
    Path(address.token_file).unlink()  # the driver's disk is not there
    with pytest.raises(SituError) as error:
        sent.with_secrets()
    assert (error.value.code, "SITU_SECRET_TOKEN" in error.value.problems[0].hint) == ("B111", True)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert admission(sent) == {"token": "hush"}
    file = Path(sent.with_secrets().token_file)
    assert (file.stat().st_mode & 0o077, file.parent.stat().st_mode & 0o077) == (0, 0)


def test_a_machine_may_have_its_own(address: Address, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent, _ = address.without_secrets(files=True)
    assert admission(sent) == {"token": "hush"}, "the driver reads the file itself"
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "token").write_text("mine")
    monkeypatch.setenv("SITU_SECRETS", str(tmp_path / "own"))
    monkeypatch.setenv("SITU_SECRET_TOKEN", "other")
    assert admission(sent) == {"token": "mine"}


def test_what_stands_in_the_address_of_a_server_never_goes_along(monkeypatch: pytest.MonkeyPatch) -> None:
    address = Address(zone="main", servers=("nats://me:h%40sh@host:4222", "nats://me:h%40sh@other:4222"))
    sent, variables = address.without_secrets(files=False)
    assert sent.servers == ("nats://host:4222", "nats://other:4222")
    assert "sh" not in sent.to_json()
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert admission(sent) == {"user": "me", "password": "h@sh"}


def test_without_secrets_nothing_changes() -> None:
    address = Address(zone="main", servers=("nats://host:4222",))
    assert address.without_secrets(files=True) == (address, {})
    assert address.with_secrets() == address
