# ruff: noqa: E501, T201 (rows of short examples; a program)
"""Random chat templates, most of them hostile, and what must hold for each: it renders or is refused,
within one second of processor time and 100 MB.

``python -m tests.text.chat.generated_templates 100000`` tries so many and prints the counts.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2.filters import FILTERS

from clearhead.errors import InputError
from clearhead.text.chat.filters import CHARGED_FILTERS, CHARGED_TESTS
from clearhead.text.chat.methods import ATTRIBUTES
from clearhead.text.chat.template import ChatTemplate
from tests.text.chat.realistic import CALLS, TEMPLATES, TOOLS

SECONDS, MEGABYTES = 1.0, 100
BATCH = 100
PATIENCE = 120.0  # seconds of the clock, for a batch

METHODS = [name for methods in ATTRIBUTES.values() for name in methods] * 3
METHODS += sorted(
    {name for kind in (str, list, dict, tuple, int, float, range) for name in dir(kind)}
)
FILTER_NAMES = [*CHARGED_FILTERS, "charged_loop", "charged_text", "charged_compare"]
TEST_NAMES = sorted(name for name in CHARGED_TESTS if name.isidentifier())
GLOBALS = [
    "range",
    "dict",
    "namespace",
    "cycler",
    "joiner",
    "lipsum",
    "self",
    "caller",
    "loop",
    "f",
]
NUMBERS = [
    "0",
    "1",
    "2",
    "3",
    "7",
    "60",
    "-1",
    "999",
    "99999",
    "1000000000",
    "1.5",
    "1e308",
    "2**60",
]
TEXTS = ["a", "ab ", "é", "😀", "\\n", "\\t", "%s", "%999d", "%(a)s", "%c%r", "{0}{0}", "{:>999}", "{:{w}}",
         "<&>", "role", "content", " ", "", "x" * 99, "a.b.c", "0x" + "f" * 50]  # fmt: skip
BINARY = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in",
          "and", "or"]  # fmt: skip
LOOP = [
    "index",
    "length",
    "previtem",
    "nextitem",
    "cycle(ns.x, 1)",
    "changed(ns.x)",
    "revindex",
    "last",
]
# Each step makes a value larger, in memory or on paper.
GROWTH = [
    "[ns.x, ns.x]", "(ns.x, ns.x)", "{'a': ns.x, 'b': ns.x}", "{ns.x: ns.x}", "[ns.x] + [ns.x]",
    "ns.x ~ ns.x", "ns.x + ns.x", "ns.x * 2", "ns.x * 3 + ns.x", "(ns.x,) * 9", "[ns.x] * 99",
    "ns.x|string * 2", "ns.x.replace('a', ns.x)", "ns.x|replace('a', ns.x)", "ns.x.join([ns.x, ns.x])",
    "[ns.x, ns.x]|join(ns.x)", "[ns.x, ns.x]|tojson", "[ns.x, ns.x]|tojson(indent=9)", "ns.x|tojson",
    "ns.x|indent(99)", "ns.x.center(ns.x|length * 2)", "ns.x|center(99999)", "ns.x.upper()", "ns.x|e",
    "ns.x.split('a')", "ns.x|list", "ns.x|map('string')|list", "ns.x|batch(2)|list", "ns.x|slice(9)|list",
    "dict(a=ns.x, b=ns.x)", "[ns.x, ns.x]|sum(start=[])", "'%s%s' % (ns.x, ns.x)", "'{0}{0}'.format(ns.x)",
    "'%s%s'|format(ns.x, ns.x)", "ns.x.encode().decode('utf-16')", "ns.x.items()|list", "ns", "[ns]",
    "namespace(x=ns.x, y=ns.x)", "ns.x[::-1]", "ns.x|reverse|list", "ns.x|groupby('role')", "f(ns.x)",
    "[ns.x]|map('upper')", "ns.x.expandtabs(99)",
]  # fmt: skip
READERS = [
    "{{ ns.x }}", "{{ ns.x|tojson }}", "{{ ns.x == ns.y }}", "{{ ns.x ~ '' }}", "{{ ns.x in [ns.y, ns.x] }}",
    "{{ [ns.x, ns.y]|sort }}", "{{ [ns.x]|join }}", "{{ {ns.x: 1} }}", "{{ ns.x|string|length }}",
    "{{ [ns.x, ns.y]|unique|list }}", "{{ ns.x is eq(ns.y) }}", "{{ ns.x < ns.y }}", "{{ '%s' % ns.x }}",
    "{{ [ns.x, ns.y]|max }}", "{{ loop.changed(ns.x) }}", "{{ messages[ns.x] }}",
    "{{ raise_exception(ns.x) }}", "{{ ns.x in messages }}", "{% for a in ns.x %}{{ a }}{% endfor %}",
    "{{ [ns.x]|map('tojson')|list }}", "{{ [[ns.x]]|groupby(0)|list }}", "{{ messages[0].get(ns.x) }}",
    "{{ ns.x|escape }}", "{{ ns.x.__class__ }}", "{{ f(*ns.x) }}", "{{ f(**ns.x) }}", "{{ ns.x.rfind(ns.y) }}",
    "{{ ns.x.strip(ns.y) }}", "{{ ns.x|striptags }}", "{{ ns.x|round(99999) }}", "{{ ns.x is divisibleby(3) }}",
    "{{ 1 < ns.x < ns.y }}", "{{ '{}'.format(ns.x) }}", "{{ ns.x.count(ns.y) }}", "{{ ns.x|sum(start=ns.y) }}",
]  # fmt: skip


class Grammar:
    """Writes one random template after another."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def template(self) -> str:
        """A template: growing values that are read, random statements, or a real one damaged."""
        kind = self.random.random()
        if kind < 0.45:
            return self._growing()
        if kind < 0.9:
            start = (
                "{% set ns = namespace(x='ab', y=[1, 'a']) %}{% set a, i = 'ab', 3 %}"
                + self._macro()
            )
            return start + "".join(self.statement(3) for _ in range(self.random.randint(1, 5)))
        return self._damaged()

    def _growing(self) -> str:
        pick, steps = self.random.choice, self.random.choice([3, 9, 25, 60, 1000, 30000])
        start = pick(["'ab'", "['a']", "('é',)", "{'a': 1}", "'😀' * 999", "range(99)", "'a b\\n' * 9999",
                      "2", "messages", "'a\\tb' * 9", "[]", "'%s' * 99"])  # fmt: skip
        body = "".join("{% set ns.x = " + pick(GROWTH) + " %}" for _ in range(pick([1, 1, 2, 3])))
        return (
            "{% macro f(a) %}{{ varargs }}{{ a }}{% endmacro %}"
            "{% set ns = namespace(x=" + start + ", y=" + start + ") %}"
            "{% for i in range(" + str(steps) + ") %}" + body
            + ("{% set ns.y = ns.x %}" if self.random.random() < 0.3 else "")
            + (pick(READERS) if self.random.random() < 0.3 else "")
            + "{% endfor %}" + "".join(pick(READERS) for _ in range(pick([1, 2, 3])))
        )  # fmt: skip

    def _macro(self) -> str:
        inner = self.statement(1)
        call = self.random.choice(["", "{{ f(a) }}", "{{ f(a) }}{{ f(a ~ a) }}", "{{ caller() }}"])
        return "{% macro f(a, b=3) %}" + inner + call + "{% endmacro %}"

    def statement(self, deep: int) -> str:
        """A statement with others inside it."""
        pick = self.random.choice
        inner = self.statement(deep - 1) if deep else "{{ " + self.expression(1) + " }}"
        value = self.expression(2)
        if self.random.random() < 0.02:
            return pick([
                "{% " + pick(["include", "import", "extends"]) + " 'x' %}",
                "{% block b %}" + inner + "{% endblock %}{{ self.b() }}",
                "{% autoescape true %}" + inner + "{% endautoescape %}",
                "{% do ns.x %}" + inner,
            ])  # fmt: skip
        choices: list[Callable[[], str]] = [
            lambda: "{{ " + value + " }}",
            lambda: "{% for i in " + value + " %}" + inner + "{{ loop." + pick(LOOP) + " }}{% endfor %}",
            lambda: "{% for i in range(" + pick(NUMBERS) + ") %}" + inner + "{% endfor %}",
            lambda: "{% for i in " + value + " recursive %}" + inner + "{{ loop(" + value + ") }}{% endfor %}",
            lambda: "{% for a, b in " + value + " if " + self.expression(1) + " %}" + inner + "{% endfor %}",
            lambda: "{% set ns." + pick("xy") + " = " + value + " %}" + inner,
            lambda: "{% set ns.x = " + pick(GROWTH) + " %}" + inner,
            lambda: "{% set z %}" + inner + inner + "{% endset %}{{ z * 9 }}",
            lambda: "{% set z | " + self._filter() + " %}" + inner + "{% endset %}{{ z }}",
            lambda: "{% if " + value + " %}" + inner + "{% else %}x{% endif %}",
            lambda: "{% call f(" + value + ") %}" + inner + "{% endcall %}",
            lambda: "{% filter " + self._filter() + " %}" + inner + "{% endfilter %}",
            lambda: "{% with a = " + value + " %}" + inner + "{% endwith %}",
            lambda: "{% generation %}" + inner + "{% endgeneration %}",
            lambda: "{% for i in range(99) %}{% break %}" + inner + "{% endfor %}",
            lambda: pick(READERS),
        ]  # fmt: skip
        return pick(choices)()

    def expression(self, deep: int) -> str:
        """An expression with others inside it."""
        pick = self.random.choice
        if deep <= 0 or self.random.random() < 0.2:
            return self._leaf()
        one, other = self.expression(deep - 1), self.expression(deep - 1)
        choices: list[Callable[[], str]] = [
            lambda: f"({one} {pick(BINARY)} {other})",
            lambda: f"({one} {pick(['<', '==', 'in'])} {other} {pick(['<', '!=', 'in'])} {self._leaf()})",
            lambda: f"({one}).{pick(METHODS)}({self._arguments(deep)})",
            lambda: f"({one}).{pick(METHODS)}",
            lambda: f"({one}|{self._filter()})",
            lambda: f"({one} is {pick(['', 'not '])}{pick(TEST_NAMES)}({self._arguments(1)}))",
            lambda: f"({one})[{other}]",
            lambda: f"({one})[{pick(['::-1', '1:', ':9', '::2', '-9:'])}]",
            lambda: f"[{one}, {other}]",
            lambda: f"({one}, {other})",
            lambda: "{" + one + ": " + other + "}",
            lambda: f"({one} if {other} else {self._leaf()})",
            lambda: f"{pick(GLOBALS)}({self._arguments(deep)})",
            lambda: f"({pick(['not ', '-', '+'])}{one})",
            lambda: pick(GROWTH),
        ]  # fmt: skip
        return pick(choices)()

    def _arguments(self, deep: int) -> str:
        count = self.random.choice([0, 0, 1, 1, 1, 2, 3])
        given = [self.expression(deep - 1) for _ in range(count)]
        names = ["*", "**", "attribute=", "start=", "width=", "indent=", "sep=", "default="]
        if given and self.random.random() < 0.3:
            given[-1] = self.random.choice(names) + given[-1]
        return ", ".join(given)

    def _filter(self) -> str:
        names = FILTER_NAMES if self.random.random() < 0.98 else sorted(FILTERS)
        return f"{self.random.choice(names)}({self._arguments(1)})"

    def _leaf(self) -> str:
        pick = self.random.choice
        choices: list[Callable[[], str]] = [
            lambda: pick(NUMBERS),
            lambda: "'" + pick(TEXTS) + "'",
            lambda: f"range({pick(NUMBERS)})",
            lambda: pick(["ns.x", "ns.x", "ns.y", "messages", "tools", "messages[0]", "i", "a", "none", "true", "messages[0].content"]),
            lambda: "'" + pick(TEXTS) + "' * " + pick(NUMBERS),
            lambda: "loop." + pick(LOOP),
        ]  # fmt: skip
        return pick(choices)()

    def _damaged(self) -> str:
        """A template of a family with a piece cut out, doubled, or put elsewhere."""
        source = self.random.choice(list(TEMPLATES.values()))
        for _ in range(self.random.randint(1, 4)):
            start = self.random.randrange(len(source))
            piece = source[start : start + self.random.randint(1, 60)]
            place = self.random.randrange(len(source))
            cut = source[:start] + source[start + len(piece) :]
            source = cut[:place] + self.random.choice(["", piece, piece * 2]) + cut[place:]
        return source


@dataclass(frozen=True)
class Result:
    """What became of one template."""

    source: str
    outcome: str  # rendered, refused, broken; or what must not be: another error's name, killed
    seconds: float  # of processor time
    megabytes: float  # of the peak above what the process had before


def tried(source: str) -> Result:
    """Compile and render a template in this process."""
    before, began = _memory("VmRSS"), time.process_time()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    outcome = "rendered"
    try:
        template = ChatTemplate(source, bos_token="<s>", eos_token="</s>")
        template.render(CALLS, tools=TOOLS)
    except InputError as error:
        broken = error.message.startswith("the chat template is broken")
        outcome = "broken" if broken else "refused"
    except Exception as error:
        outcome = type(error).__name__
    return Result(source, outcome, time.process_time() - began, _memory("VmHWM") - before)


def _memory(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith(name))
    return int(line.split()[1]) / 1024


def tried_apart(sources: list[str]) -> Iterator[Result]:
    """Try templates in a process of their own; one that is killed is named."""
    done = 0
    for result in _in_a_fork(sources):
        done += 1
        yield result
    if done < len(sources):
        yield Result(sources[done], "killed", PATIENCE, 0)
        yield from tried_apart(sources[done + 1 :])


def _in_a_fork(sources: list[str]) -> Iterator[Result]:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        with os.fdopen(write, "w") as out:
            for source in sources:
                print(json.dumps(vars(tried(source))), file=out, flush=True)
        os._exit(0)
    os.close(write)
    try:
        with os.fdopen(read) as lines:
            while select.select([lines], [], [], PATIENCE)[0] and (line := lines.readline()):
                yield Result(**json.loads(line))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def faults(result: Result) -> list[str]:
    """What does not hold for a result."""
    found = []
    if result.outcome not in ("rendered", "refused", "broken"):
        found.append(result.outcome)
    if result.seconds > SECONDS:
        found.append(f"{result.seconds:.1f} s")
    if result.megabytes > MEGABYTES:
        found.append(f"{result.megabytes:.0f} MB")
    return found


def main(count: int, seed: int = 0) -> int:
    """Try so many templates, print counts and faults, and return the number of faults."""
    grammar, outcomes, slowest, largest, wrong = Grammar(seed), Counter[str](), 0.0, 0.0, 0
    for _ in range(0, count, BATCH):
        for result in tried_apart([grammar.template() for _ in range(BATCH)]):
            outcomes[result.outcome] += 1
            slowest, largest = max(slowest, result.seconds), max(largest, result.megabytes)
            if found := faults(result):
                wrong += 1
                print(", ".join(found), repr(result.source), flush=True)
    print(dict(outcomes), f"slowest {slowest:.2f} s, largest {largest:.0f} MB, {wrong} faults")
    return wrong


def _arguments(given: list[str]) -> Any:
    return [int(number) for number in given]


if __name__ == "__main__":
    sys.exit(main(*_arguments(sys.argv[1:])) > 0)
