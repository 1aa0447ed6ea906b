"""Rewriting of a chat template before it is compiled, so that all it does goes through the budget.

Jinja compiles a template to Python. Calls, attributes, items and arithmetic already ask the
environment; comparisons, loops and dictionaries would run as plain Python. They become filters of
our own here. What is no part of a chat template's language is refused.
"""

from __future__ import annotations

from typing import Any, cast

from jinja2 import TemplateSyntaxError, nodes
from jinja2.visitor import NodeTransformer

STEP = 10  # units for each node of the tree that runs
TURN = 50  # units for a turn of a loop, beside its body
SHORT = 256  # characters of a constant that is compared for nothing
MOST_NODES = 8_000  # of a template: about 80,000 characters
LONGEST = 100_000  # characters of a template
DEEPEST = 25  # statements inside statements

_STATEMENTS = (
    "Output For If Macro CallBlock FilterBlock With Assign AssignBlock Continue Break Scope"
)
_VALUES = """Const TemplateData Name NSRef Tuple List Dict Pair Keyword CondExpr Filter Test Call
Getitem Getattr Slice Concat Compare Operand Mul Div FloorDiv Add Sub Mod Pow And Or Not Neg Pos"""
_ALLOWED = frozenset(["Template", *_STATEMENTS.split(), *_VALUES.split()])


class Rewriting(NodeTransformer):
    """Puts our filters in, and notes what macros and recursive loops cost at each call."""

    def __init__(self, tree: nodes.Template) -> None:
        self.counts = node_counts(tree)
        self.costs: dict[str | None, int] = {}
        self.recursion = TURN

    def visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> Any:
        """Refuse what chat templates have no use for."""
        if type(node).__name__ not in _ALLOWED:
            name = type(node).__name__.lower()
            raise TemplateSyntaxError(f"chat templates have no {name}", node.lineno)
        return super().visit(node, *args, **kwargs)

    def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802 (the base class finds it by name)
        """The items are paid for before the first turn."""
        cost = TURN + STEP * self.counts[id(node)]
        self.recursion = max(self.recursion, cost)
        self.generic_visit(node)
        node.iter = _filtered(node.iter, "charged_loop", nodes.Const(cost))
        return node

    def visit_Macro(self, node: nodes.Macro | nodes.CallBlock) -> nodes.Node:  # noqa: N802
        """Each call costs the body."""
        name = getattr(node, "name", None)
        self.costs[name] = max(self.costs.get(name, 0), STEP * self.counts[id(node)])
        self.generic_visit(node)
        return node

    visit_CallBlock = visit_Macro  # noqa: N815

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:  # noqa: N802
        """``a ~ b`` is paid for by its characters."""
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes, lineno=node.lineno), "charged_text")

    def visit_Compare(self, node: nodes.Compare) -> nodes.Expr:  # noqa: N802
        """Comparisons are paid for, except with a short constant."""
        self.generic_visit(node)
        if len(node.ops) == 1 and _is_cheap(node.expr, node.ops[0]):
            return node
        chain = [part for one in node.ops for part in (nodes.Const(one.op), one.expr)]
        return _filtered(node.expr, "charged_compare", *chain)

    def visit_Pair(self, node: nodes.Pair) -> nodes.Pair:  # noqa: N802
        """Keys are checked before they are hashed."""
        self.generic_visit(node)
        if not isinstance(node.key, nodes.Const):
            node.key = _filtered(node.key, "checked_key")
        return node

    def visit_Call(self, node: nodes.Call | nodes.Filter | nodes.Test) -> nodes.Expr:  # noqa: N802
        """``*arguments`` are paid for as a loop."""
        self.generic_visit(node)
        if node.dyn_args is not None:
            node.dyn_args = _filtered(node.dyn_args, "charged_loop", nodes.Const(STEP))
        return node

    visit_Filter = visit_Test = visit_Call  # noqa: N815


def node_counts(tree: nodes.Node) -> dict[int, int]:
    """The number of nodes in each subtree, by the ``id`` of its root.

    A template that is longer than any model's is refused: it would take seconds to compile.
    """
    order: list[nodes.Node] = []
    waiting: list[tuple[nodes.Node, int]] = [(tree, 0)]
    while waiting:
        node, deep = waiting.pop()
        order.append(node)
        if len(order) > MOST_NODES or deep > DEEPEST:
            raise TemplateSyntaxError("it is longer or deeper than any chat template", 1)
        deep += isinstance(node, nodes.Stmt)
        waiting.extend((child, deep) for child in node.iter_child_nodes())
    counts: dict[int, int] = {}
    for node in reversed(order):  # children come after their parents
        counts[id(node)] = 1 + sum(counts[id(child)] for child in node.iter_child_nodes())
    return counts


def _is_cheap(left: nodes.Expr, operand: nodes.Operand) -> bool:
    """True if a comparison with a short constant: it ends as soon as that ends."""
    if operand.op in ("in", "notin"):
        return _is_short_list(operand.expr)
    return _is_short(left) or _is_short(operand.expr)


def _is_short(node: nodes.Node) -> bool:
    if not isinstance(node, nodes.Const):
        return False
    return not isinstance(node.value, str) or len(node.value) <= SHORT


def _is_short_list(node: nodes.Node) -> bool:
    return (
        isinstance(node, nodes.List | nodes.Tuple)
        and len(node.items) <= SHORT
        and all(map(_is_short, node.items))
    )


def _filtered(value: nodes.Node, name: str, *args: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(
        cast(nodes.Expr, value), name, list(args), [], None, None, lineno=value.lineno
    )
