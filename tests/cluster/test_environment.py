"""Options from the environment: variables, files of secrets, a properties file, and their order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import aiokwire
from aiokwire import ConfigurationError, ConsumerConfig, ProducerConfig, RetryPolicy, Worker, WorkerConfig
from aiokwire.cluster.config import CONFIG_FILE, SECRETS_DIR, environment_options

PASSWORD = "s3same-0pen"
LOGIN = {"AIOKWIRE_SECURITY_PROTOCOL": "SASL_SSL", "AIOKWIRE_SASL_MECHANISM": "PLAIN", "AIOKWIRE_SASL_USERNAME": "bob"}


def written(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def test_every_option_has_a_variable() -> None:
    environ = {
        "AIOKWIRE_BOOTSTRAP_SERVERS": "a:1,b:2",
        "AIOKWIRE_GROUP_ID": "billing",
        "AIOKWIRE_CONCURRENCY": "8",
        "AIOKWIRE_COMMIT_INTERVAL_MS": "250.5",
        "AIOKWIRE_ENABLE_IDEMPOTENCE": "True",
        "AIOKWIRE_PARTITION_ASSIGNMENT_STRATEGY": "range, sticky",
        "AIOKWIRE_CLIENT_ID": "",
        "PATH": "/bin",
    }
    config = WorkerConfig.from_environment(environ)
    assert [str(address) for address in config.addresses] == ["a:1", "b:2"]
    assert (config.group_id, config.concurrency, config.commit_interval_ms) == ("billing", 8, 250.5)
    assert config.enable_idempotence is True
    assert config.partition_assignment_strategy == ["range", "sticky"]
    assert config.client_id == "aiokwire", "an empty variable is not set"


def test_clients_share_an_environment_and_take_what_is_theirs() -> None:
    environ = {"AIOKWIRE_GROUP_ID": "billing", "AIOKWIRE_LINGER_MS": "7", "AIOKWIRE_CONCURRENCY": "8"}
    assert ProducerConfig.from_environment(environ).linger_ms == 7
    assert ConsumerConfig.from_environment(environ).group_id == "billing"


def test_a_keyword_precedes_a_variable_that_precedes_a_secret_that_precedes_the_file(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    file = written(
        tmp_path / "client.properties",
        "bootstrap.servers=file:1\nclient.id=file\ngroup.id=file\nlinger.ms=1\nconcurrency=1\n",
    )
    for name in ("client_id", "linger.ms", "concurrency"):
        written(secrets / name, "2\n")
    environ = {
        "AIOKWIRE_CONFIG_FILE": file,
        "AIOKWIRE_SECRETS_DIR": str(secrets),
        "AIOKWIRE_LINGER_MS": "3",
        "AIOKWIRE_CONCURRENCY": "3",
    }
    config = WorkerConfig.from_environment(environ, concurrency=4)
    assert config.bootstrap_servers == "file:1"
    assert (config.group_id, config.client_id, config.linger_ms, config.concurrency) == ("file", "2", 3, 4)
    other = written(tmp_path / "other.properties", "group.id=other")
    assert WorkerConfig.from_environment(environ, file=other).group_id == "other"


@pytest.mark.parametrize("name", ["AIOKWIRE_SASL_PASSWORD", "sasl_password", "sasl.password", "sasl-password"])
def test_secrets_come_from_files_and_are_never_shown(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / name, f"{PASSWORD}\n")
    for environ in ({"AIOKWIRE_SASL_PASSWORD_FILE": path}, {"AIOKWIRE_SECRETS_DIR": str(tmp_path)}):
        config = WorkerConfig.from_environment({**LOGIN, **environ}, group_id="billing")
        assert config.sasl_plain_password is not None
        assert PASSWORD not in repr(config)
        assert getattr(config.sasl_plain_password, "reveal")() == PASSWORD  # noqa: B009 - a Secret by now


def test_a_directory_may_have_secrets_of_others(tmp_path: Path) -> None:
    written(tmp_path / "database_password", "x")
    (tmp_path / "..data").mkdir()  # as Kubernetes has it
    assert ProducerConfig.from_environment({"AIOKWIRE_SECRETS_DIR": str(tmp_path)}) == ProducerConfig()


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"AIOKWIRE_GRUOP_ID": "a"}, "AIOKWIRE_GRUOP_ID is not an option of aiokwire: did you mean AIOKWIRE_GROUP_ID?"),
        ({"AIOKWIRE_SASL_PASWORD_FILE": "/x"}, "did you mean AIOKWIRE_SASL_PASSWORD_FILE?"),
        ({"AIOKWIRE_XYZ": "a"}, "AIOKWIRE_XYZ is not an option of aiokwire: its name is AIOKWIRE_ and an option of"),
        ({"AIOKWIRE_RETRY": "3"}, "AIOKWIRE_RETRY: retry is not given as text; pass it as a keyword in your code"),
        ({"AIOKWIRE_CONCURRENCY": "many"}, "concurrency must be an int, not 'many'"),
        ({"AIOKWIRE_CONCURRENCY": "0"}, "concurrency must be at least 1"),
        ({"AIOKWIRE_SASL_PASSWORD_FILE": "/no/such"}, "AIOKWIRE_SASL_PASSWORD_FILE: /no/such cannot be read"),
        ({"AIOKWIRE_SECRETS_DIR": "/no/such"}, "AIOKWIRE_SECRETS_DIR: /no/such cannot be read: No such file"),
        ({"AIOKWIRE_CONFIG_FILE": "/no/such"}, "/no/such cannot be read"),
        ({"AIOKWIRE_SASL_PASSWORD": "a", "AIOKWIRE_SASL_PASSWORD_FILE": "/x"}, "are both set: set one of them"),
    ],
)
def test_a_mistake_is_reported_with_its_variable_and_advice(environ: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        WorkerConfig.from_environment(environ, group_id="billing")
    assert message in str(caught.value)


def test_the_error_of_an_option_names_the_variables_without_their_values() -> None:
    environ = {**LOGIN, "AIOKWIRE_SASL_PASSWORD": PASSWORD, "AIOKWIRE_LINGER_MS": "five"}
    with pytest.raises(ConfigurationError) as caught:
        ProducerConfig.from_environment(environ)
    assert "five" in str(caught.value)
    assert "environment variables: AIOKWIRE_LINGER_MS, AIOKWIRE_SASL_MECHANISM, " in str(caught.value)
    assert PASSWORD not in str(caught.value)


def test_a_file_in_the_directory_with_our_prefix_must_be_an_option(tmp_path: Path) -> None:
    path = written(tmp_path / "aiokwire_sasl_pasword", PASSWORD)
    with pytest.raises(ConfigurationError, match=f"{path} is not an option of aiokwire: did you mean") as caught:
        ProducerConfig.from_environment({"AIOKWIRE_SECRETS_DIR": str(tmp_path)})
    assert PASSWORD not in str(caught.value)


def test_a_worker_reads_the_environment_of_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIOKWIRE_GROUP_ID", "billing")
    monkeypatch.setenv("AIOKWIRE_CONCURRENCY", "8")
    worker = Worker.from_environment(concurrency=4, retry=RetryPolicy(attempts=1))
    assert (worker.config.group_id, worker.config.concurrency) == ("billing", 4)


def test_a_settings_library_may_read_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    library = pytest.importorskip("pydantic_settings")
    monkeypatch.setenv("SHOP_KAFKA__BOOTSTRAP_SERVERS", "a:1")
    monkeypatch.setenv("SHOP_KAFKA__GROUP_ID", "billing")

    class Settings(library.BaseSettings):  # type: ignore[misc, name-defined]  # it may be missing
        model_config = library.SettingsConfigDict(env_prefix="SHOP_", env_nested_delimiter="__")
        kafka: dict[str, str]

    assert Worker.from_dict(Settings().kafka).config.group_id == "billing"


def test_variables_that_commands_read_are_not_taken_for_options() -> None:
    sources = (Path(aiokwire.__file__).parent / "cli").glob("*.py")
    names = {name for path in sources for name in re.findall(r'"(AIOKWIRE_[A-Z_]+)"', path.read_text())}
    assert "AIOKWIRE_OUTBOX_DATABASE" in names
    environment_options(ProducerConfig, dict.fromkeys(names - {CONFIG_FILE, SECRETS_DIR}, "1"))
