"""Groups that suggest the nearest verb; `LazyGroup` imports verbs when they are called."""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Mapping
from typing import Any

import click


class VerbGroup(click.Group):
    """A group that suggests the nearest verb for a mistyped one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in known:
            nearest = difflib.get_close_matches(args[0], known, n=1, cutoff=0.5)
            hint = f"Did you mean {nearest[0]!r}?" if nearest else f"Commands: {', '.join(known)}."
            ctx.fail(f"No such command {args[0]!r}. {hint}")
        return super().resolve_command(ctx, args)


class LazyGroup(VerbGroup):
    """A group whose commands are modules with a `command`; `verbs` has modules and short help."""

    def __init__(self, *args: Any, verbs: Mapping[str, tuple[str, str]], **options: Any) -> None:
        super().__init__(*args, **options)
        self._verbs = verbs

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # while a verb's module is imported: not "Aborted!"
            sys.exit(130)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._verbs:
            return None
        command: click.Command = importlib.import_module(self._verbs[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # The short help is in the table, so that `--help` imports no verb.
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._verbs.items()])
