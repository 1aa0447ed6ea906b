"""Help texts: options in sections, and examples at the end."""

from __future__ import annotations

import click

DEFAULT_MODEL = "smollm2"
MODEL = "Model: a name (see clearhead models), a folder, a .gguf file or a hub id."
MODEL_OR_DEFAULT = f"{MODEL}  [default: {DEFAULT_MODEL}]"

SECTIONS = {
    "Sampling": (
        "temperature", "top_k", "top_p", "min_p", "typical", "min_tokens_to_keep",
        "repetition_penalty", "no_repeat_ngram_size", "presence_penalty", "frequency_penalty",
        "seed", "file_settings",
    ),
    "Display": (
        "predictions", "top", "lens", "tokens", "hide", "colour", "pool", "measure", "everything",
    ),
    "Output": (
        "html", "svg", "png", "json", "csv", "open_page", "show", "alternatives", "as_json",
    ),
}  # fmt: skip


class SectionedCommand(click.Command):
    """A command whose help shows its options in sections."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; a text without quotation marks is told how to get some."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if "unexpected extra argument" not in error.message or not _takes_one_text(self):
                raise
            command = f'{ctx.command_path} "several words"'
            hint = f"a text of several words stands in quotation marks: {command}"
            raise click.UsageError(f"{error.message}\nHint: {hint}", ctx=error.ctx) from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one list of options for each section that has any."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                sections.setdefault(_section(parameter.name), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def _takes_one_text(command: click.Command) -> bool:
    arguments = [one for one in command.params if isinstance(one, click.Argument)]
    named = " ".join(one.metavar or str(one.name).upper() for one in arguments)
    return len(arguments) == 1 and ("TEXT" in named or "PROMPT" in named)


def _section(name: str | None) -> str:
    return next((title for title, names in SECTIONS.items() if name in names), "Options")


def examples(*lines: str) -> str:
    """Examples at the end of a help text, one to a line and not wrapped (click's ``\\b``)."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])
