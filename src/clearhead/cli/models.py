"""``clearhead models``: lists, fetches, checks and removes models."""

from __future__ import annotations

from typing import Any

import click

from clearhead.checkpoints.store.catalogue import CatalogueEntry
from clearhead.checkpoints.store.hub import fetch_from_hub, is_hub_id
from clearhead.checkpoints.store.model_store import ModelStore
from clearhead.cli.help_texts import SectionedCommand, examples
from clearhead.cli.loading import say_terms
from clearhead.cli.printing import console, say, write_json
from clearhead.errors import StoreError

COLUMNS = ("name", "kind", "layers×heads", "parameters", "size", "where", "licence")


@click.group(name="models", invoke_without_command=True,
             short_help="List, fetch, check and remove models.", epilog=examples(
    "clearhead models",
    "clearhead models pull minilm",
    "clearhead models info dates",
))  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List the models that have a name; fetch, check or remove them.

    Without a command, it prints the list.
    """
    if context.invoked_subcommand is not None:
        return
    store = ModelStore()
    if as_json:
        write_json([_description(store, name) for name in store.catalogue], indent=2)
    else:
        _show_list(store)


@command.command(cls=SectionedCommand, short_help="Fetch a model.", epilog=examples(
    "clearhead models pull smollm2",
    "clearhead models pull Qwen/Qwen3-0.6B",
))  # fmt: skip
@click.argument("name")
def pull(name: str) -> None:
    """Fetch model NAME, or fetch it again if its files are damaged.

    NAME is a name of the list, or a model on the hub: org/name or org/name/file.gguf.
    """
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    say_terms(name)
    with Progress(*columns, console=console(err=True), transient=True) as bars:
        task = bars.add_task(name, total=None)

        def progress(done: int, total: int, what: str) -> None:
            bars.update(task, completed=done, total=total, description=f"{name}: {what}")

        if is_hub_id(name):
            path = fetch_from_hub(name, progress)
        else:
            path = ModelStore().pull(name, progress, verify=True)
    say(f"{name} is here: {path}")


@command.command(cls=SectionedCommand, short_help="Merge a LoRA adapter into its model.",
                 epilog=examples("clearhead models merge trained merged"))  # fmt: skip
@click.argument("adapter")
@click.argument("folder", type=click.Path())
def merge(adapter: str, folder: str) -> None:
    """Write the model that ADAPTER, a folder with a LoRA adapter, makes of its base into FOLDER.

    The result is an ordinary model folder: transformers and other programs open it.
    """
    from clearhead.checkpoints.adapters.merge import merge as merged

    say(f"{adapter} and its base are one model in {merged(adapter, folder)}")


@command.command(short_help="Delete a model.", epilog=examples("clearhead models remove minilm"))
@click.argument("name")
def remove(name: str) -> None:
    """Delete the files of model NAME from this machine."""
    store = ModelStore()
    store.remove(name)
    say(f"{name} is removed from {store.folder_of(name).parent}")


@command.command(cls=SectionedCommand, short_help="Describe a model and check its files.",
                 epilog=examples("clearhead models info smollm2"))  # fmt: skip
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print the description as JSON.")
def info(name: str, as_json: bool) -> None:
    """Describe model NAME, and check its files against their SHA-256."""
    from clearhead.checkpoints.model_facts import facts_of

    store = ModelStore()
    entry = store.entry(name)
    here = store.folder_of(name).exists()
    damaged = store.damaged(name) if here else {}
    facts = facts_of(store.path_of(name)) if here and not damaged else {}
    if as_json:
        write_json(_full_description(store, entry, damaged, facts), indent=2)
    else:
        _show_info(store, entry, damaged, facts)
    if damaged:
        raise StoreError(
            f"{len(damaged)} of {len(entry.files)} files of {name} are damaged: "
            + "; ".join(f"{path}: {fault}" for path, fault in damaged.items()),
            hint=f"fetch them again: clearhead models pull {name}",
        )


def _description(store: ModelStore, name: str) -> dict[str, Any]:
    entry = store.entry(name)
    return {
        "name": name,
        "kind": entry.kind,
        "layers": entry.layers,
        "heads": entry.heads,
        "parameters": entry.parameters,
        "size": entry.size,
        "download": sum(wheel.size for wheel in entry.wheels),
        "installed": store.installed(name),
        "path": str(store.path_of(name)),
        "licence": entry.licence,
        "description": entry.description,
        "terms": entry.terms,
    }


def _full_description(
    store: ModelStore, entry: CatalogueEntry, damaged: dict[str, str], facts: dict[str, str]
) -> dict[str, Any]:
    files = [
        {
            "path": file.path,
            "size": file.size,
            "sha256": file.sha256,
            "state": _state(store, entry, damaged, file.path),
        }
        for file in entry.files
    ]
    return {**_description(store, entry.name), "files": files, "metadata": facts}


def _state(store: ModelStore, entry: CatalogueEntry, damaged: dict[str, str], path: str) -> str:
    if not store.folder_of(entry.name).exists():
        return "not here"
    return damaged.get(path, "sound")


def _where(store: ModelStore, name: str) -> str:
    if store.entry(name).package_folder is not None:
        return "built in"
    if store.installed(name):
        return "here"
    return "damaged" if store.folder_of(name).exists() else "to pull"


def _row(store: ModelStore, entry: CatalogueEntry) -> tuple[str, ...]:
    return (
        entry.name,
        entry.kind,
        f"{entry.layers}×{entry.heads}",
        _millions(entry.parameters),
        f"{entry.size / 1e6:.1f} MB",
        _where(store, entry.name),
        entry.licence,
    )


def _millions(count: int) -> str:
    return f"{count / 1e6:.0f}M" if count >= 1e8 else f"{count / 1e6:.1f}M"


def _show_list(store: ModelStore) -> None:
    from rich import box
    from rich.table import Table

    rows = [_row(store, entry) for entry in store.catalogue.values()]
    terminal = console()
    if terminal.is_terminal:
        table = Table(*COLUMNS, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for row in rows:
            table.add_row(*row)
        terminal.print(table)
    else:
        _show_plain([COLUMNS, *rows])
    say(f"Models are kept in {store.home / 'models'}")


def _show_plain(rows: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        say("  ".join(cells).rstrip())


def _show_info(
    store: ModelStore, entry: CatalogueEntry, damaged: dict[str, str], facts: dict[str, str]
) -> None:
    lines = dict(zip(COLUMNS, _row(store, entry), strict=True))
    lines |= {"description": entry.description, "path": str(store.path_of(entry.name))}
    if entry.wheels:
        wheels = ", ".join(f"{wheel.project} {wheel.version}" for wheel in entry.wheels)
        lines["from"] = f"{wheels} on the package index"
    if entry.terms:
        lines["terms"] = entry.terms
    _show_plain([(key, value) for key, value in lines.items()])
    say("\nfiles")
    _show_plain(
        [
            (f"  {file.path}", f"{file.size} bytes", _state(store, entry, damaged, file.path))
            for file in entry.files
        ]
    )
    if facts:
        say("\nmetadata")
        _show_plain([(f"  {key}", value) for key, value in facts.items()])
