"""Options: converts keyword arguments to a frozen dataclass; errors name the correct option.

`from_options` builds the dataclass; `convert_text` accepts values from the environment;
`documents_options` shows every option in `help()` and the signature of the class that takes them.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from aiokwire.errors import ConfigurationError, InvalidArgument

ConfigT = TypeVar("ConfigT")
ClassT = TypeVar("ClassT", bound=type)

INT32_MAX = 2**31 - 1
_SECRET_WORDS = ("password", "secret", "jaas", "passphrase", "keystore_key", "_token", "key_pem")

# --- building ---------------------------------------------------------------------------------------------------------


def from_options(cls: type[ConfigT], options: Mapping[str, Any]) -> ConfigT:
    """Build the config dataclass `cls` from keyword options.

    Raises: ConfigurationError: an option is unknown (with the advice of `unknown_option`), or its
    value is invalid.
    """
    valid = _names(cls)
    for name in options:
        if name not in valid:
            raise ConfigurationError(unknown_option(name, valid, cls.__name__))
    return cls(**options)


def config_of(cls: type[Any], config: ConfigT | None, options: Mapping[str, Any]) -> ConfigT:
    """Return a client's `config`, or build one from its keyword options, without those of None.

    Raises: InvalidArgument: both were given; ConfigurationError: as `from_options`, or `config` is
    of another class.
    """
    given = {name: value for name, value in options.items() if value is not None or name not in _names(cls)}
    if config is None:
        built: ConfigT = from_options(cls, given)
        return built
    require_type("config", config, cls, f"a {cls.__name__}")
    if given:
        raise InvalidArgument(
            f"give either config or keyword options ({', '.join(given)}), not both: use "
            f"dataclasses.replace(config, {next(iter(given))}=...)"
        )
    return config


def unknown_option(name: str, valid: Iterable[str], owner: str) -> str:
    """Return the message for an option that `owner` does not have, with the best advice.

    Accepts Kafka's spelling with dots and dashes. The advice, in order: our spelling, the
    replacement of another client's option, the class that has it, the nearest name, where all are
    listed.
    """
    valid = list(valid)
    problem = f"{owner.removesuffix('Config')} has no option {name!r}"
    ours = name.strip().replace(".", "_").replace("-", "_").lower()
    if ours in valid:
        return f"{problem}; did you mean {ours!r}?"
    advice = importlib.import_module("aiokwire.option_advice").ADVICE.get(ours)
    if advice is not None:
        return f"{problem}: {advice}"
    other = class_with_option(ours, owner)
    if other is not None:
        return f"{problem}: {ours} is an option of {other}"
    nearest = difflib.get_close_matches(ours, valid, n=1, cutoff=0.5)
    if nearest:
        return f"{problem}; did you mean {nearest[0]!r}?"
    if len(valid) <= 10:
        return f"{problem}; valid options: {', '.join(valid)}"
    return f"{problem}; help(aiokwire.{owner}) lists all {len(valid)}"


def class_with_option(name: str, owner: str) -> str | None:
    """Return the class, not `owner`'s, that has an option. Imports the package at the call."""
    package = importlib.import_module("aiokwire")
    for other in ("Producer", "Consumer"):
        config = f"{other}Config"
        if config != owner and name in _names(getattr(package, config)):
            return other
    return None


def is_secret_option(name: str) -> bool:
    """Whether the value of an option, of this or another client, is a password, key or token."""
    ours = name.lower().replace(".", "_").replace("-", "_")
    return any(word in ours for word in _SECRET_WORDS) and not ours.endswith(("_location", "_file", "_url"))


def _names(cls: type) -> list[str]:
    return [field.name for field in dataclasses.fields(cls) if field.init]


# --- values from the environment --------------------------------------------------------------------------------------


def convert_text(config: Any) -> None:
    """Convert texts to numbers, True, False in options of dataclass `config` that take only those.

    `linger_ms=os.environ["LINGER_MS"]` works; an option that also accepts a str keeps its text for
    its own parser. Other texts are kept, so that the option's check refuses them.
    """
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if isinstance(value, str):
            parse = _PARSERS.get(str(field.type).removesuffix(" | None"))
            if parse is not None:
                object.__setattr__(config, field.name, parse(value))


def parse_bool(text: str) -> bool | str:
    """Return True or False for "true" and "false" in any case, and any other text unchanged."""
    return {"true": True, "false": False}.get(text.strip().lower(), text)


def _parse_int(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return text


def _parse_number(text: str) -> float | str:
    whole = _parse_int(text)
    if isinstance(whole, int):
        return whole
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


_PARSERS: Mapping[str, Callable[[str], object]] = {"int": _parse_int, "float": _parse_number, "bool": parse_bool}

# --- checks -----------------------------------------------------------------------------------------------------------


def require_int(name: str, value: object, *, minimum: int | None = None, maximum: int | None = None) -> int:
    """Return `value` as an int within its bounds.

    Raises: ConfigurationError: naming the option, the value and the bounds.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigurationError(f"{name} must be an int, not {value!r} ({type(value).__name__})")
    _require_bounds(name, value, minimum, maximum)
    return value


def require_number(name: str, value: object, *, minimum: float | None = None, maximum: float | None = None) -> float:
    """Return `value` as an int or float within its bounds (milliseconds may have a fraction).

    Raises: ConfigurationError: naming the option, the value and the bounds.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:  # noqa: PLR0124 - NaN only
        raise ConfigurationError(f"{name} must be a number, not {value!r} ({type(value).__name__})")
    _require_bounds(name, value, minimum, maximum)
    return value


def checked_timeout(timeout: float | None) -> float | None:
    """Return the `timeout` of a call, in seconds; None: without a limit.

    Raises: InvalidArgument: it is not a number, or is negative.
    """
    if timeout is None or (isinstance(timeout, (int, float)) and not isinstance(timeout, bool) and timeout >= 0):
        return timeout
    raise InvalidArgument(f"timeout must be None or a number of seconds, at least 0, not {timeout!r}")


def _require_bounds(name: str, value: float, minimum: float | None, maximum: float | None) -> None:
    if minimum is not None and value < minimum:
        raise ConfigurationError(f"{name} must be at least {minimum}, not {value!r}")
    if maximum is not None and value > maximum:
        raise ConfigurationError(f"{name} must be at most {maximum}, not {value!r}")


def require_type(name: str, value: object, kind: type | tuple[type, ...], expected: str) -> None:
    """Check that an option has one of its types.

    Raises: ConfigurationError: naming the option, the expected type and the value.
    """
    if not isinstance(value, kind):
        raise ConfigurationError(f"{name} must be {expected}, not {value!r} ({type(value).__name__})")


def require_bool(name: str, value: object) -> None:
    """Check that an option is True or False.

    Raises: ConfigurationError: naming the option and the value.
    """
    require_type(name, value, bool, "True or False")


# --- help -------------------------------------------------------------------------------------------------------------


def documents_options(config: type | None = None) -> Callable[[ClassT], ClassT]:
    """Decorate a class so that its docstring lists the options of `config`, itself by default.

    A class that accepts another's options has them in its signature, too. Both are made when read.
    """

    def decorate(cls: ClassT) -> ClassT:
        cls.__doc__ = _OptionsDoc(cls.__doc__ or "", config if config is not None else cls)  # type: ignore[assignment]  # a descriptor
        if config is not None:
            cls.__signature__ = _OptionsSignature(config)  # type: ignore[attr-defined]  # `inspect.signature` reads it
        return cls

    return decorate


class _OptionsDoc:
    """A docstring that is completed when `help()`, an editor or a notebook reads it."""

    def __init__(self, text: str, config: type) -> None:
        self._text = text
        self._config = config

    def __get__(self, instance: object, owner: type | None = None) -> str:
        options = [
            f"  {name}: {kind} = {default}\n{text}" for name, kind, default, text in described_options(self._config)
        ]
        return "\n".join([inspect.cleandoc(self._text), "", "Options:", "", *options])


class _OptionsSignature:
    """The signature of a class that accepts the options of a config as keywords."""

    def __init__(self, config: type) -> None:
        self._config = config

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        own = list(inspect.signature(owner.__init__).parameters.values())[1:]  # type: ignore[misc]  # of the class
        named = [parameter for parameter in own if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
        taken = {parameter.name for parameter in named}
        options = [
            inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type)
            for field in last_security(dataclasses.fields(self._config))
            if field.init and field.name not in taken
        ]
        return inspect.Signature([*named, *options])


def described_options(config: type) -> list[tuple[str, str, str, str]]:
    """Return (name, type, default, indented text) of each option, texts from `config`'s source."""
    texts: dict[str, str] = {}
    for cls in reversed(config.__mro__):
        if dataclasses.is_dataclass(cls):
            texts.update(_attribute_docstrings(cls))
    return [
        (field.name, str(field.type), repr(field.default), _indented(texts.get(field.name, "")))
        for field in last_security(dataclasses.fields(config))
        if field.init
    ]


def last_security(fields: Iterable[dataclasses.Field[Any]]) -> list[dataclasses.Field[Any]]:
    """Return the fields of a config with those of TLS and SASL, which are many, at the end."""
    return sorted(fields, key=lambda field: field.name.startswith(("security_", "ssl_", "sasl_")))


def _attribute_docstrings(cls: type) -> dict[str, str]:
    import ast
    import textwrap

    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    except (OSError, TypeError):  # installed without sources
        return {}
    assert isinstance(body, ast.ClassDef)
    return {
        first.target.id: str(second.value.value)
        for first, second in zip(body.body, body.body[1:], strict=False)
        if isinstance(first, ast.AnnAssign) and isinstance(first.target, ast.Name)
        and isinstance(second, ast.Expr) and isinstance(second.value, ast.Constant)
    }  # fmt: skip


def _indented(text: str) -> str:
    return "".join(f"      {line}\n" for line in inspect.cleandoc(text).splitlines())
