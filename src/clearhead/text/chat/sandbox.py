"""The sandbox of chat templates: Jinja's own, with a budget. Imports jinja2."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from types import CodeType
from typing import Any, NoReturn, cast

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from clearhead.text.chat.budget import Budget, check_format

CALL_COST = 200
GROWING_FILTERS = ("replace", "join", "center", "indent", "batch", "slice", "wordwrap", "truncate")
GROWING_METHODS = {"replace", "join", "center", "ljust", "rjust", "zfill", "expandtabs"}
FORBIDDEN_FILTERS = ("format", "urlize", "xmlattr", "pprint", "random", "filesizeformat")
FORBIDDEN_METHODS = ("translate", "maketrans")
_CONTEXTS = (jinja2.Environment, Context, nodes.EvalContext)


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox with the helpers that templates expect; every loop and text is charged."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, budget: Budget) -> None:
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
        )
        self.budget = budget
        for name in FORBIDDEN_FILTERS:
            self.filters.pop(name)
        for name in GROWING_FILTERS:
            self.filters[name] = self._growing(name)
        self.filters.update(tojson=_to_json, charged_loop=budget.loop, charged_text=budget.text)
        self.globals.pop("lipsum")
        self.globals.update(range=self._range, raise_exception=_raise, strftime_now=_strftime_now)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        """Send the items of every loop and the parts of every ``a ~ b`` through the budget."""
        tree = super()._parse(source, name, filename)
        _Charging().visit(tree)
        return tree

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Jinja's rule, and no methods whose cost is unknown."""
        return attr not in FORBIDDEN_METHODS and super().is_safe_attribute(obj, attr, value)

    def call(self, context: Context, obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a function or method of a template and charge for it."""
        self.budget.spend(CALL_COST)
        name = getattr(obj, "__name__", "")
        # Jinja wraps str.format; the pattern is the text that the method inside is bound to.
        owner = getattr(getattr(obj, "__wrapped__", obj), "__self__", "")
        values = [*args, *kwargs.values()]
        if name in GROWING_METHODS:
            self.budget.operation(name, [owner, *values])
        if name in ("format", "format_map"):
            check_format(owner, values)
        return super().call(context, obj, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """``left operator right``, if the budget allows the result."""
        self.budget.binary(operator, left, right)
        return super().call_binop(context, operator, left, right)

    def _growing(self, name: str) -> Callable[..., Any]:
        function = self.filters[name]

        def charged(*args: Any, **kwargs: Any) -> Any:
            values = [self._listed(value) for value in args]
            self.budget.operation(name, [v for v in values if not isinstance(v, _CONTEXTS)])
            self.budget.operation("argument", list(kwargs.values()))
            return function(*values, **kwargs)

        # Jinja marks filters that want the environment with attributes; they must survive.
        charged.__dict__.update(function.__dict__)
        return charged

    def _listed(self, value: Any) -> Any:
        return self.budget.loop(value) if isinstance(value, Iterator) else value

    def _range(self, *bounds: int) -> range:
        numbers = range(*bounds)
        self.budget.spend(len(numbers))
        return numbers


class Generation(Extension):
    """``{% generation %}`` marks what the assistant says, for training; here it is let through."""

    tags = {"generation"}  # noqa: RUF012 (the base class declares it so)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """The body as if the tag were not there."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Charging(NodeTransformer):
    """Puts a filter of the budget around whatever a template loops over or joins with ``~``."""

    def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802 (the base class finds it by name)
        self.generic_visit(node)
        node.iter = _filtered(node.iter, "charged_loop")
        node.recursive = False  # its calls would pass the filter by
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:  # noqa: N802
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes, lineno=node.lineno), "charged_text")


def compile_template(source: str) -> CodeType:
    """The template as code that ``render_template`` runs."""
    return Sandbox(Budget()).compile(source)


def render_template(code: CodeType, variables: Mapping[str, Any]) -> str:
    """Run compiled template code in a sandbox of its own."""
    sandbox = Sandbox(Budget())
    template = jinja2.Template.from_code(sandbox, code, dict(sandbox.globals))
    pieces = []
    for piece in template.generate(**variables):
        sandbox.budget.spend(len(piece))
        pieces.append(piece)
    return "".join(pieces)


def _filtered(value: nodes.Node, name: str) -> nodes.Filter:
    return nodes.Filter(cast(nodes.Expr, value), name, [], [], None, None, lineno=value.lineno)


def _to_json(
    value: Any,
    indent: int | None = None,
    ensure_ascii: bool = False,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Plain JSON: Jinja's own filter escapes for HTML, which no model was trained on."""
    if indent is not None and not 0 <= indent <= 16:
        raise jinja2.TemplateRuntimeError(f"it indents JSON by {indent}")
    return json.dumps(
        value,
        indent=indent,
        ensure_ascii=ensure_ascii,
        separators=separators,
        sort_keys=sort_keys,
    )


def _raise(message: Any) -> NoReturn:
    raise jinja2.TemplateError(str(message))


def _strftime_now(pattern: str) -> str:
    return datetime.now().strftime(pattern)
