"""Expressions read by sqlglot, a well-kept SQL parser; the only module of the language that knows it.

Its dialect is cut down to our language: no statements, no built-in functions, no comments, only our keywords. What it
still accepts and we do not mean is refused here. `read_expression` makes :class:`situ.lang.expr.syntax.Syntax` of text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from sqlglot import exp, parser, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from situ.lang.catalogue import NOT_IN_LANGUAGE, SYNTAX, TOO_LARGE
from situ.lang.expr.limits import ExpressionLimits, make_room
from situ.lang.expr.syntax import KEYWORDS, Locate, Syntax
from situ.lang.problems import Location, Problem, SituError

_SYMBOLS = ("||", "->", "<>", "!=", "<=", ">=", "==")


def read_expression(text: str, locate: Locate, limits: ExpressionLimits) -> Syntax:
    """The syntax of a text that is not too long; :class:`SituError` with the first problem."""
    read = _Reading(text, locate, limits)
    stream = read.tokens()
    return read.convert(read.parse(stream))


class _Language(Dialect):
    """The SQL dialect reduced to what our expressions may hold."""

    class Tokenizer(tokens.Tokenizer):
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]
        COMMENTS: ClassVar[list[str | tuple[str, str]]] = []
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            word: kind for word, kind in tokens.Tokenizer.KEYWORDS.items() if word in KEYWORDS or word in _SYMBOLS
        }

    class Parser(parser.Parser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {}
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {"CASE": parser.Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]}
        STATEMENT_PARSERS: ClassVar[dict[Any, Any]] = {}
        PRIMARY_PARSERS: ClassVar[dict[Any, Any]] = {
            **parser.Parser.PRIMARY_PARSERS,
            TokenType.NULL: lambda self, token: exp.Null().update_positions(token),
            TokenType.TRUE: lambda self, token: exp.Boolean(this=True).update_positions(token),
            TokenType.FALSE: lambda self, token: exp.Boolean(this=False).update_positions(token),
        }


_TYPED_TEXT = {"timestamp", "date", "duration"}
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE, TokenType.L_BRACE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END, TokenType.R_BRACE}
_PREFIX = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE, TokenType.ARROW}
# After a number these end the operand, so a percent sign before them is a unit and not a remainder.
_ENDS_OPERAND = _CLOSING | {
    TokenType.COMMA, TokenType.AND, TokenType.OR, TokenType.THEN, TokenType.ELSE, TokenType.WHEN, TokenType.EQ,
    TokenType.NEQ, TokenType.LT, TokenType.GT, TokenType.LTE, TokenType.GTE, TokenType.STAR, TokenType.SLASH,
    TokenType.PLUS, TokenType.IS,
}  # fmt: skip


class _Reading:
    """One expression being read: its text, its places, its limits, and how much of them is used."""

    def __init__(self, text: str, locate: Locate, limits: ExpressionLimits) -> None:
        self.text, self.locate, self.limits = text, locate, limits
        self.nodes = self.literals = 0

    # ── text → tokens ──

    def tokens(self) -> list[Token]:
        try:
            stream = _Language().tokenize(self.text)
        except TokenError:
            raise SituError(self._syntax(len(self.text) - 1, 1, "text or name that is not closed")) from None
        if not stream:
            raise SituError(self._syntax(0, 1, "nothing"))
        if len(stream) > 8 * (self.limits.nodes + self.limits.literals):
            raise SituError(_too_large(self.locate(0, 1), "nodes", self.limits.nodes))
        self._bound_nesting(stream)
        return list(self._with_units(stream))

    def _bound_nesting(self, stream: list[Token]) -> None:
        """The parser recurses on these tokens; bounding them first bounds its stack."""
        depth = prefixes = 0
        for token in stream:
            if token.token_type in _OPENING:
                depth += 1
            elif token.token_type in _CLOSING:
                depth -= 1
            prefixes = prefixes + 1 if token.token_type in _PREFIX else 0
            if depth + prefixes > self.limits.depth:
                raise SituError(_too_large(self._at(token), "levels", self.limits.depth))

    def _with_units(self, stream: list[Token]) -> Iterator[Token]:
        """``5 m`` becomes ``5 [m]``, ``90 [km/h]`` one unit token, ``DATE '…'`` a call: forms the parser accepts."""
        index = 0
        while index < len(stream):
            token, following = stream[index], stream[index + 1 : index + 3]
            yield token
            index += 1
            kind = following[0].token_type if following else None
            if token.token_type is TokenType.NUMBER and following:
                if kind is TokenType.L_BRACKET:
                    close = next(
                        (i for i in range(index, len(stream)) if stream[i].token_type is TokenType.R_BRACKET), None
                    )
                    if close is None or close == index + 1:
                        raise SituError(self._syntax(following[0].start, 1, "a bracket without a unit in it"))
                    yield from self._unit(stream[index + 1].start, stream[close - 1].end, following[0])
                    index = close + 1
                elif kind is TokenType.VAR or (
                    kind is TokenType.MOD and (len(following) == 1 or following[1].token_type in _ENDS_OPERAND)
                ):
                    yield from self._unit(following[0].start, following[0].end, following[0])
                    index += 1
            elif token.text.lower() in _TYPED_TEXT and token.token_type is TokenType.VAR and kind is TokenType.STRING:
                yield _token(TokenType.L_PAREN, "(", following[0])
                yield following[0]
                yield _token(TokenType.R_PAREN, ")", following[0])
                index += 1

    def _unit(self, start: int, end: int, near: Token) -> Iterator[Token]:
        yield _token(TokenType.L_BRACKET, "[", near)
        unit = _token(TokenType.IDENTIFIER, self.text[start : end + 1], near)
        unit.start, unit.end = start, end
        yield unit
        yield _token(TokenType.R_BRACKET, "]", near)

    # ── tokens → the parser's tree ──

    def parse(self, stream: list[Token]) -> exp.Expr:
        try:
            make_room()
            found = _Language().parser().parse_into(exp.Condition, stream, self.text)
        except ParseError as error:
            raise SituError(self._unexpected(error)) from None
        except RecursionError:
            raise SituError(_too_large(self.locate(0, 1), "levels", self.limits.depth)) from None
        except (SqlglotError, AttributeError, TypeError, ValueError, IndexError, KeyError):
            # The parser reads full SQL and trusts its input more than we may: half a construct can trip it.
            raise SituError(self._syntax(0, len(self.text), "something that is no expression")) from None
        if len(found) != 1 or found[0] is None:
            raise SituError(self._syntax(0, len(self.text), "more than one expression"))
        return found[0]

    def _unexpected(self, error: ParseError) -> Problem:
        detail = error.errors[0] if error.errors else {}
        word = str(detail.get("highlight") or "")
        line, column = int(detail.get("line") or 1), int(detail.get("col") or 1)
        offset = _offset(self.text, line, column) - len(word)
        return self._syntax(max(0, offset), len(word), f"`{word}`" if word else "the end")

    # ── the parser's tree → syntax ──

    def convert(self, node: Any, depth: int = 1) -> Syntax:
        if depth > self.limits.depth:
            raise SituError(_too_large(self.locate(self._span(node)[0], 1), "levels", self.limits.depth))
        self.nodes += 1
        if self.nodes > self.limits.nodes:
            raise SituError(_too_large(self.locate(self._span(node)[0], 1), "nodes", self.limits.nodes))
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise SituError(self._foreign(node))
        return handler(self, node, depth)

    def make(self, node: Any, kind: str, parts: tuple[Syntax, ...] = (), text: str = "") -> Syntax:
        """A node stands where its own word and its parts stand; the parser keeps places for words only."""
        start, end = len(self.text), 0
        if node is not None and "start" in node.meta:
            start, end = node.meta["start"], node.meta["end"] + 1
        for part in parts:
            start, end = min(start, part.start), max(end, part.end)
        return Syntax(kind, text, parts, start, end)

    def _span(self, node: Any) -> tuple[int, int]:
        """From the first to the last place the parser kept at or below this node: for problems only, it walks."""
        start, end = len(self.text), 0
        if isinstance(node, exp.Expr):
            for below in node.walk():
                if "start" in below.meta:
                    start, end = min(start, below.meta["start"]), max(end, below.meta["end"] + 1)
        return (start, end) if end else (0, len(self.text))

    def _foreign(self, node: Any) -> Problem:
        start, end = self._span(node)
        return NOT_IN_LANGUAGE(self.locate(start, end - start), found=self.text[start:end] or type(node).__name__)

    def foreign(self, node: Any) -> SituError:
        return SituError(self._foreign(node))

    def _at(self, token: Token) -> Location:
        return self.locate(token.start, token.end - token.start + 1)

    def _syntax(self, offset: int, length: int, found: str) -> Problem:
        return SYNTAX(self.locate(offset, length), found=found)


def _too_large(location: Location, what: str, limit: int) -> Problem:
    return TOO_LARGE(location, what=what, limit=limit)


def _token(kind: TokenType, text: str, near: Token) -> Token:
    return Token(kind, text, near.line, near.col, near.start, near.end)


def _offset(text: str, line: int, column: int) -> int:
    start = 0
    for _ in range(line - 1):
        start = text.find("\n", start) + 1
    return start + column


# ── one handler per construct of the language; what has none is not in it ──────────────────────────


def _binary(kind: str) -> Callable[[_Reading, Any, int], Syntax]:
    def handle(read: _Reading, node: Any, depth: int) -> Syntax:
        return read.make(node, kind, (read.convert(node.this, depth + 1), read.convert(node.expression, depth + 1)))

    return handle


def _chain(kind: str, of: type[exp.Binary]) -> Callable[[_Reading, Any, int], Syntax]:
    """``a AND b AND c`` is one node of three parts, however long: the parser nests it to the left."""

    def handle(read: _Reading, node: Any, depth: int) -> Syntax:
        parts: list[Any] = []
        rest: Any = node
        while isinstance(rest, of):
            parts.append(rest.expression)
            rest = rest.this
        parts.append(rest)
        return read.make(None, kind, tuple(read.convert(part, depth + 1) for part in reversed(parts)))

    return handle


def _unary(kind: str) -> Callable[[_Reading, Any, int], Syntax]:
    def handle(read: _Reading, node: Any, depth: int) -> Syntax:
        return read.make(node, kind, (read.convert(node.this, depth + 1),))

    return handle


def _literal(read: _Reading, node: Any, depth: int) -> Syntax:
    return read.make(node, "text" if node.is_string else "number", text=node.this)


def _boolean(read: _Reading, node: Any, depth: int) -> Syntax:
    return read.make(node, "true" if node.this else "false")


def _null(read: _Reading, node: Any, depth: int) -> Syntax:
    return read.make(node, "null")


def _identifier(read: _Reading, node: Any, depth: int) -> Syntax:
    if not isinstance(node, exp.Identifier) or not isinstance(node.this, str):
        raise read.foreign(node)
    return read.make(node, "name", text=node.this)


def _column(read: _Reading, node: Any, depth: int) -> Syntax:
    """``a.b.c`` arrives as column, table, schema, catalogue: for us steps of one path."""
    parts = [node.args.get(key) for key in ("catalog", "db", "table", "this")]
    result: Syntax | None = None
    for part in parts:
        if part is None:
            continue
        name = _identifier(read, part, depth)
        result = name if result is None else Syntax("dot", name.text, (result,), result.start, name.end)
    if result is None:
        raise read.foreign(node)
    return result


def _dot(read: _Reading, node: Any, depth: int) -> Syntax:
    if not isinstance(node.expression, exp.Identifier):
        raise read.foreign(node)
    return read.make(node.expression, "dot", (read.convert(node.this, depth + 1),), node.expression.this)


def _paren(read: _Reading, node: Any, depth: int) -> Syntax:
    read.nodes -= 1
    return read.convert(node.this, depth)


def _bracket(read: _Reading, node: Any, depth: int) -> Syntax:
    inner = node.expressions
    if not isinstance(node.this, exp.Literal) or node.this.is_string or len(inner) != 1:
        raise read.foreign(node)
    unit = inner[0].this if isinstance(inner[0], exp.Column) else inner[0]
    if not isinstance(unit, exp.Identifier):
        raise read.foreign(node)
    return read.make(unit, "quantity", (read.make(node.this, "number", text=node.this.this),), unit.this)


def _call(read: _Reading, node: Any, depth: int) -> Syntax:
    parts = tuple(_argument(read, part, depth + 1) for part in node.expressions)
    return read.make(node, "call", parts, str(node.this).lower())


def _argument(read: _Reading, node: Any, depth: int) -> Syntax:
    if isinstance(node, exp.Alias):
        return read.make(node, "field", (read.convert(node.this, depth),), node.alias)
    if isinstance(node, exp.Lambda):
        if len(node.expressions) != 1 or not isinstance(node.expressions[0], exp.Identifier):
            raise read.foreign(node)
        return read.make(node, "lambda", (read.convert(node.this, depth),), node.expressions[0].this)
    return read.convert(node, depth)


def _case(read: _Reading, node: Any, depth: int) -> Syntax:
    parts: list[Syntax] = []
    for arm in node.args["ifs"]:
        condition = read.convert(arm.this, depth + 1)
        if node.this is not None:
            subject = read.convert(node.this, depth + 1)
            condition = read.make(arm, "=", (subject, condition))
        parts += [condition, read.convert(arm.args["true"], depth + 1)]
    if node.args.get("default") is not None:
        parts.append(read.convert(node.args["default"], depth + 1))
    return read.make(node, "case", tuple(parts))


def _in(read: _Reading, node: Any, depth: int) -> Syntax:
    if any(node.args.get(key) for key in ("query", "unnest", "field", "is_global")) or not node.expressions:
        raise read.foreign(node)
    read.literals += len(node.expressions)
    if read.literals > read.limits.literals:
        raise SituError(_too_large(read.locate(read._span(node)[0], 1), "literals", read.limits.literals))
    options = tuple(_option(read, option, depth + 1) for option in node.expressions)
    return read.make(node, "in", (read.convert(node.this, depth + 1), *options))


def _option(read: _Reading, node: Any, depth: int) -> Syntax:
    """A value of an IN list: counted as a literal already if it is one, negative numbers included."""
    before = read.nodes
    read.nodes = 0
    option = read.convert(node, depth)
    simple = option.parts[0] if option.kind == "negate" else option
    read.nodes = before + (0 if simple.kind in _LITERALS else read.nodes)
    return option


_LITERALS = ("number", "text", "quantity", "null", "true", "false")


def _between(read: _Reading, node: Any, depth: int) -> Syntax:
    parts = (node.this, node.args["low"], node.args["high"])
    return read.make(node, "between", tuple(read.convert(part, depth + 1) for part in parts))


def _like(read: _Reading, node: Any, depth: int) -> Syntax:
    parts = (read.convert(node.this, depth + 1), read.convert(node.expression, depth + 1))
    return _negated(read, node, read.make(node, "like", parts))


def _escape(read: _Reading, node: Any, depth: int) -> Syntax:
    like = node.this
    if not isinstance(like, exp.Like):
        raise read.foreign(node)
    parts = (read.convert(part, depth + 1) for part in (like.this, like.expression, node.expression))
    return _negated(read, like, read.make(node, "like", tuple(parts)))


def _negated(read: _Reading, node: Any, like: Syntax) -> Syntax:
    """``x NOT LIKE …``: of all negated forms the only one that the parser marks instead of wrapping it in a NOT."""
    return read.make(node, "not", (like,)) if node.args.get("negate") else like


_HANDLERS: dict[type, Callable[[_Reading, Any, int], Syntax]] = {
    exp.Literal: _literal,
    exp.Boolean: _boolean,
    exp.Null: _null,
    exp.Identifier: _identifier,
    exp.Column: _column,
    exp.Dot: _dot,
    exp.Paren: _paren,
    exp.Bracket: _bracket,
    exp.Anonymous: _call,
    exp.Case: _case,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like,
    exp.Escape: _escape,
    exp.And: _chain("and", exp.And),
    exp.Or: _chain("or", exp.Or),
    exp.DPipe: _chain("||", exp.DPipe),
    exp.Not: _unary("not"),
    exp.Neg: _unary("negate"),
    exp.Is: _binary("is"),
    exp.EQ: _binary("="),
    exp.NEQ: _binary("<>"),
    exp.LT: _binary("<"),
    exp.LTE: _binary("<="),
    exp.GT: _binary(">"),
    exp.GTE: _binary(">="),
    exp.Add: _binary("+"),
    exp.Sub: _binary("-"),
    exp.Mul: _binary("*"),
    exp.Div: _binary("/"),
    exp.Mod: _binary("%"),
}
