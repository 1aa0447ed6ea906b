"""``clearhead steps``: a worked example of attention, step by step."""

from __future__ import annotations

import click

EXAMPLES = ("selfish", "batch", "action")


@click.command("steps")
@click.argument("example", type=click.Choice(EXAMPLES), default="selfish")
def command(example: str = "selfish") -> None:
    """Show a worked example of attention, step by step.

    selfish: one query against four keys. batch: three queries in parallel. action: self-attention
    over the sentence "Action gets results".
    """
    from rich.console import Console

    from clearhead.explain.worked_examples import worked_example
    from clearhead.views.terminal import show_step_table

    console = Console()
    for table in worked_example(example):
        console.print(show_step_table(table))
    others = [name for name in EXAMPLES if name != example]
    tries = "  ".join(f"./run steps {name}" for name in others)
    console.print(f"Try next: {tries}  ./run --help", style="dim")
