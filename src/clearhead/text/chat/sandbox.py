"""The sandbox of chat templates: Jinja's own, in which everything has a price. Imports jinja2."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import BuiltinMethodType, CodeType, FunctionType, MethodType
from typing import Any, NoReturn

import jinja2
from jinja2 import TemplateRuntimeError, TemplateSyntaxError, Undefined, nodes, pass_context
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Cycler, Joiner, Namespace
from markupsafe import Markup

from clearhead.text.chat import methods, operators, rewriting, weights
from clearhead.text.chat.budget import FAR_MORE, Budget
from clearhead.text.chat.filters import CHARGED_FILTERS, CHARGED_TESTS

CALL = 150  # units of any call
LONGEST_RANGE = 100_000  # as in Jinja's own sandbox
LONGEST_PATTERN = 1000  # characters of a date's format
LARGEST_INPUT = 1 << 30  # bytes of all messages
_DICT_NAMES = frozenset(dir(dict))


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox with the helpers that templates expect; everything is paid from a budget."""

    intercepted_binops = frozenset(operators.ARITHMETIC)
    budget: Budget
    compiled: Compiled

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[Generation, loopcontrols],
            optimized=False,
            finalize=_written,
        )
        self.filters = {**CHARGED_FILTERS, **_OWN_FILTERS}
        self.tests = dict(CHARGED_TESTS)
        self.globals = dict(_FUNCTIONS)

    def rendering(self, budget: Budget, compiled: Compiled) -> Sandbox:
        """This sandbox for one rendering, with a budget of its own."""
        other = Sandbox.__new__(Sandbox)
        other.__dict__.update(self.__dict__, budget=budget, compiled=compiled)
        return other

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Jinja's rule; the common case, a field of a message, comes first."""
        if type(obj) is dict and attribute not in _DICT_NAMES:
            try:
                return obj[attribute]
            except KeyError:
                return self.undefined(obj=obj, name=attribute)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Jinja's rule, with slices and keys paid for."""
        kind = type(argument)
        if kind is str or kind is int:
            if type(obj) is dict and argument in obj:
                return obj[argument]
        elif kind is slice:
            if type(obj) in weights.TEXTS:
                self.budget.spend(weights.size(obj))
            elif type(obj) in weights.SIZED:
                self.budget.spend(8 * len(obj))
        else:
            weights.check_key(argument)
        return super().getitem(obj, argument)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:  # noqa: ARG002
        """True for the attributes that have a price."""
        if type(obj) is Namespace:
            return not attr.startswith("_")
        return attr in methods.ATTRIBUTES.get(type(obj), ())

    def wrap_str_format(self, value: Any) -> None:  # noqa: ARG002
        """``str.format`` is a method like others here: ``call`` knows it."""
        return

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        """Call a function or method of a template, if it has a price."""
        budget = __self.budget
        budget.spend(CALL + 10 * (len(args) + 10 * len(kwargs)))
        kind = type(__obj)
        if kind is BuiltinMethodType or (kind is MethodType and type(__obj.__self__) is Markup):
            kwargs.pop("_loop_vars", None)  # Jinja's own, for functions that want its context
            kwargs.pop("_block_vars", None)
            return __self._method(__obj, args, kwargs)
        if kind is Macro:
            costs = __self.compiled.costs
            budget.spend(CALL + costs[__obj.name if __obj.name in costs else None])
        elif kind is LoopContext:
            args = (weights.loop(budget, args[0], __self.compiled.recursion), *args[1:])
        elif kind is MethodType and type(__obj.__self__) in (LoopContext, Cycler):
            weights.look(budget, args)
        elif kind is not Joiner and not _is_ours(__obj) and not isinstance(__obj, Undefined):
            raise TypeError(f"a {kind.__name__} cannot be called")
        return __context.call(__obj, *args, **kwargs)

    def _method(self, method: Any, args: Any, kwargs: Any) -> Any:
        owner, name = method.__self__, method.__name__
        price = methods.METHODS.get(type(owner), {}).get(name)
        if price is not None:
            price(self.budget, owner, *args, **kwargs)
        elif name == "join" and len(args) == 1 and type(owner) in weights.TEXTS:
            items = weights.loop(self.budget, args[0], weights.ITEM + 5 * weights.size(owner))
            weights.look(self.budget, items, 5)
            return owner.join(items)
        elif name in methods.PERFORMED and type(owner) in weights.TEXTS:
            operators.check_format(self.budget, owner, [*args, *kwargs.values()])
            return super().wrap_str_format(method)(*args, **kwargs)  # type: ignore[misc]
        else:
            raise TypeError(f"{name} of {type(owner).__name__} cannot be called")
        return method(*args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:  # noqa: ARG002
        """``left operator right``, if the budget allows the result."""
        if operator == "+" and type(left) is str and type(right) is str:
            self.budget.spend(weights.size(left) + weights.size(right))
            return left + right
        self.budget.spend(weights.NODE)
        return operators.arithmetic(self.budget, operator, left, right)

    def concat(self, pieces: Iterable[str]) -> str:
        """The text of a macro or block."""
        return operators.joined(self.budget, pieces)


class Generation(Extension):
    """``{% generation %}`` marks what the assistant says, for training; here it is let through."""

    tags = {"generation"}  # noqa: RUF012 (the base class declares it so)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """The body as if the tag were not there."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


@dataclass(frozen=True)
class Compiled:
    """A template as code, with the prices of its macros and recursive loops."""

    code: CodeType
    costs: dict[str | None, int]
    recursion: int


def compile_template(source: str) -> Compiled:
    """The template as code that ``render_template`` runs."""
    if len(source) > rewriting.LONGEST:
        raise TemplateSyntaxError("it is longer or deeper than any chat template", 1)
    sandbox = _SANDBOX.rendering(Budget(), Compiled(compile("", "", "exec"), {}, 0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's, about the code that Jinja makes of it
        tree = sandbox.parse(source)
        rewritten = rewriting.Rewriting(tree)
        rewritten.visit(tree)
        code = sandbox.compile(tree)
    costs = {None: max(rewritten.costs.values(), default=0), **rewritten.costs}
    return Compiled(code, costs, rewritten.recursion)


def render_template(compiled: Compiled, variables: Mapping[str, Any]) -> str:
    """Run compiled template code in a sandbox of its own."""
    budget = Budget(reserve=lambda: weights.weigh(dict(variables), LARGEST_INPUT))
    sandbox = _SANDBOX.rendering(budget, compiled)
    template = jinja2.Template.from_code(sandbox, compiled.code, sandbox.globals)
    pieces = []
    for piece in template.generate(**variables):
        budget.spend(weights.size(piece))
        pieces.append(piece)
    return "".join(pieces)


def _is_ours(function: Any) -> bool:
    return isinstance(function, FunctionType | type) and function in _CALLABLE


def _of(context: Context) -> Budget:
    assert isinstance(context.environment, Sandbox)
    return context.environment.budget


@pass_context
def _written(context: Context, value: Any) -> Any:
    return value if type(value) is str else operators.text_of(_of(context), value)


@pass_context
def _loop(context: Context, items: Any, cost: int) -> Any:
    return weights.loop(_of(context), items, max(cost, rewriting.STEP))


@pass_context
def _text(context: Context, parts: list[Any]) -> str:
    return operators.joined(_of(context), parts)


@pass_context
def _compare(context: Context, left: Any, *chain: Any) -> Any:
    """``a < b < c`` with its signs between the values."""
    budget, found = _of(context), True
    for sign, right in zip(chain[::2], chain[1::2], strict=True):
        found = operators.compare(budget, sign, left, right)
        if not found:
            break
        left = right
    return found


def _key(key: Any) -> Any:
    weights.check_key(key)
    return key


@pass_context
def _dict(context: Context, *args: Any, **kwargs: Any) -> dict[Any, Any]:
    for pairs in args[:1]:
        weights.look(_of(context), pairs)
        for pair in () if type(pairs) is dict else pairs:
            weights.check_key(pair[:1])
    return dict(*args, **kwargs)


@pass_context
def _namespace(context: Context, *args: Any, **kwargs: Any) -> Namespace:
    return Namespace(_dict(context, *args, **kwargs))


def _range(*bounds: int) -> range:
    numbers = range(*bounds)
    if len(numbers[: LONGEST_RANGE + 1]) > LONGEST_RANGE:
        raise TemplateRuntimeError(FAR_MORE)
    return numbers


@pass_context
def _raise(context: Context, message: Any) -> NoReturn:
    raise jinja2.TemplateError(str(operators.text_of(_of(context), message)))


def _strftime_now(pattern: str) -> str:
    if len(pattern) > LONGEST_PATTERN:
        raise TemplateRuntimeError("it writes a date longer than any conversation needs")
    return datetime.now().strftime(pattern)


_OWN_FILTERS = {
    "charged_loop": _loop,
    "charged_text": _text,
    "charged_compare": _compare,
    "checked_key": _key,
}
_FUNCTIONS = {
    "range": _range,
    "dict": _dict,
    "namespace": _namespace,
    "cycler": Cycler,
    "joiner": Joiner,
    "raise_exception": _raise,
    "strftime_now": _strftime_now,
}
_CALLABLE = frozenset(_FUNCTIONS.values())
_SANDBOX = Sandbox()
