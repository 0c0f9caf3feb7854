"""Finds functions in C++ by their braces: length, parameters, nesting.

A heuristic over clang-formatted code, not a parser: it looks at the words between the last `;`, `{`
or `}` and a brace (the head) and decides what the brace opens.
"""

import dataclasses
import re

from checks import source

_TOKEN = re.compile(
    r"""[A-Za-z_]\w*|\d[\w.]*|"[^"]*"|'[^']*'|::|->\*?|\+\+|--|<<=?|<=>|<=|&&|\|\||\.\.\.|[^\s\w]"""
)
_CONTROL = {"if", "for", "while", "switch", "catch", "do", "try", "else"}
_COUNTED = _CONTROL - {"else"}
_CLASS = {"class", "struct", "union"}
_SPECIFIERS = {"const", "noexcept", "override", "final", "mutable", "constexpr", "&", "&&", "try",
               "volatile", "static", "consteval"}
_NOT_A_NAME = {"noexcept", "explicit", "alignas", "decltype", "requires", "__attribute__", "sizeof",
               "static_assert", "typeof", "if", "for", "while", "switch", "return", "catch"}
_OPEN = {"(": ")", "[": "]"}
_RUNS = {"function", "control", "lambda", "block"}
BRACED = "{}"


@dataclasses.dataclass
class Function:
    name: str
    line: int
    end: int
    parameters: int
    too_deep: list  # lines of blocks below the deepest level allowed

    @property
    def length(self):
        return self.end - self.line + 1


@dataclasses.dataclass
class _Frame:
    kind: str
    depth: int = 0  # control structures around this point
    function: Function | None = None
    head: list = dataclasses.field(default_factory=list)
    lines: list = dataclasses.field(default_factory=list)
    parens: int = 0

    def reset(self):
        self.head, self.lines, self.parens = [], [], 0

    def add(self, token, line):
        self.head.append(token)
        self.lines.append(line)


def first_branches(code):
    """Blanks directives and every #else or #elif branch, so that braces balance."""
    kept, hidden = [], []
    for line in code.split("\n"):
        match = re.match(r"\s*#\s*(if|else|elif|endif)", line)
        if match:
            word = match.group(1)
            if word == "if":
                hidden.append(False)
            elif word == "endif" and hidden:
                hidden.pop()
            elif hidden:
                hidden[-1] = True
        kept.append("" if match or any(hidden) else line)
    return source.without_directives("\n".join(kept))


def _tokens(code):
    line, last = 1, 0
    for match in _TOKEN.finditer(code):
        line += code.count("\n", last, match.start())
        last = match.start()
        yield match.group(), line


def _join_operators(head):
    """`operator < (` becomes one word, so that `<` is not taken for a template's."""
    joined, index = [], 0
    while index < len(head):
        if head[index] != "operator":
            joined.append(head[index])
            index += 1
            continue
        name = "operator"
        index += 1
        if head[index : index + 2] == ["(", ")"]:
            name, index = name + "()", index + 2
        while index < len(head) and head[index] != "(":
            name, index = name + head[index], index + 1
        joined.append(name)
    return joined


def _without_attributes(head):
    result, index = [], 0
    while index < len(head):
        if head[index : index + 2] == ["[", "["]:
            while index < len(head) and head[index : index + 2] != ["]", "]"]:
                index += 1
            index += 2
        else:
            result.append(head[index])
            index += 1
    return result


def _skip_template(head):
    while head and head[0] == "template" and head[1:2] == ["<"]:
        depth, index = 0, 1
        while index < len(head):
            depth += {"<": 1, ">": -1}.get(head[index], 0)
            index += 1
            if depth == 0:
                break
        head = head[index:]
    return head


def _matching_open(tokens, end):
    """Index of the bracket that tokens[end] closes, or -1."""
    pairs = {")": "(", "]": "["}
    opening, depth = pairs[tokens[end]], 0
    for index in range(end, -1, -1):
        if tokens[index] == tokens[end]:
            depth += 1
        elif tokens[index] == opening:
            depth -= 1
            if depth == 0:
                return index
    return -1


def _strip_specifiers(tokens):
    tokens = list(tokens)
    while tokens:
        if tokens[-1] in _SPECIFIERS:
            tokens.pop()
            continue
        if tokens[-1] == ")":
            opening = _matching_open(tokens, len(tokens) - 1)
            if opening > 0 and tokens[opening - 1] in ("noexcept", "requires"):
                del tokens[opening - 1 :]
                continue
        break
    return tokens


def _before_arrow(tokens):
    for index in range(len(tokens) - 1, -1, -1):
        if tokens[index] == "->":
            return tokens[:index]
    return None


def _is_lambda(head):
    for tokens in (head, _before_arrow(head)):
        if not tokens:
            continue
        tokens = _strip_specifiers(tokens)
        if tokens and tokens[-1] == ")":
            tokens = tokens[: max(_matching_open(tokens, len(tokens) - 1), 0)]
            if tokens and tokens[-1] == ">":
                while tokens and tokens[-1] != "]":
                    tokens.pop()
        if not tokens or tokens[-1] != "]":
            continue
        opening = _matching_open(tokens, len(tokens) - 1)
        before = tokens[opening - 1] if opening > 0 else ""
        subscript = re.fullmatch(r"\w+|\)|\]", before) and before not in ("return", "co_return", "co_await")
        if opening >= 0 and not subscript:
            return True
    return False


def _depth_zero(tokens):
    """Yields (index, token) outside of parentheses, brackets and template arguments."""
    depth = angle = 0
    for index, token in enumerate(tokens):
        if token in _OPEN:
            if depth == 0 and angle == 0:
                yield index, token
            depth += 1
        elif token in (")", "]"):
            depth -= 1
            if depth == 0 and angle == 0:
                yield index, token
        elif depth == 0 and token == "<":
            angle += 1
        elif depth == 0 and token == ">":
            angle = max(0, angle - 1)
        elif depth == 0 and angle == 0:
            yield index, token


def _signature(head):
    """(name, parameters, is_body) when the head is a function's, else None."""
    opening = name_end = None
    for index, token in _depth_zero(head):
        if token == "=":
            return None
        if token == "(" and index > 0 and opening is None:
            before = head[index - 1]
            if re.fullmatch(r"[A-Za-z_]\w*|>|operator.*", before) and before not in _NOT_A_NAME:
                opening, name_end = index, index
    if opening is None:
        return None
    closing = next((i for i, t in _depth_zero(head) if t == ")" and i > opening), None)
    if closing is None:
        return None
    tail = head[closing + 1 :]
    is_body = True
    colon = next((i for i, t in _depth_zero(tail) if t == ":"), None)
    if colon is not None and all(t in _SPECIFIERS or t in "()" for t in tail[:colon]):
        is_body = tail[-1] in (")", BRACED, "...")
    elif tail and not _ends_signature(tail):
        return None
    parameters = head[opening + 1 : closing]
    name = _name(head[:name_end])
    if re.fullmatch(r"(TYPED_)?TEST(_[FP])?", name):
        name = ".".join(token for token in parameters if token != ",")
    return name, _count(parameters), is_body


def _ends_signature(tail):
    if tail[0] in ("->", "requires", "noexcept", "throw"):
        return True
    return not _strip_specifiers(tail) or _strip_specifiers(tail)[0] in ("->", "requires")


def _name(tokens):
    name, angle = [], 0
    for token in reversed(tokens):
        angle += {">": 1, "<": -1}.get(token, 0)
        if angle > 0 or token == "<":
            continue
        if token == "::" or token == "~" or not name or name[-1] in ("::", "~"):
            name.append(token)
        else:
            break
    return "".join(reversed(name))


def _count(tokens):
    if not tokens or tokens == ["void"]:
        return 0
    return 1 + sum(1 for _, token in _depth_zero(tokens) if token == ",")


def _lambda_parameters(head):
    tokens = _strip_specifiers(_before_arrow(head) or head)
    if not tokens or tokens[-1] != ")":
        tokens = _strip_specifiers(head)
    if not tokens or tokens[-1] != ")":
        return 0
    return _count(tokens[_matching_open(tokens, len(tokens) - 1) + 1 : -1])


def _controls(head):
    count, depth = 0, 0
    for index, token in enumerate(head):
        depth += {"(": 1, ")": -1}.get(token, 0)
        if depth == 0 and token in _COUNTED:
            count += 1
        elif token == "else" and head[index + 1 : index + 2] != ["if"]:
            count += 1
    return count


class Scanner:
    """Yields the functions of one file; `declarations` collects those without a body."""

    def __init__(self, code, max_depth):
        self.code = first_branches(code)
        self.max_depth = max_depth
        self.functions = []
        self.declarations = []
        self.balanced = True
        self.stack = [_Frame("namespace")]

    def run(self):
        for token, line in _tokens(self.code):
            top = self.stack[-1]
            if token == "{":
                self._open(top, line)
            elif token == "}":
                self._close(line)
            elif token == ";" and top.parens == 0:
                self._declaration(top)
                top.reset()
            else:
                top.parens += (token in _OPEN) - (token in (")", "]"))
                top.add(token, line)
                if token == ":" and top.parens == 0 and self._is_label(top.head):
                    top.reset()
        self.balanced = self.balanced and len(self.stack) == 1
        return self

    @staticmethod
    def _is_label(head):
        if head[0] in ("case", "default"):
            return True
        return head[:-1] in (["public"], ["private"], ["protected"])

    def _open(self, top, line):
        head = _skip_template(_join_operators(_without_attributes(top.head)))
        kind, name, parameters = self._classify(top, head)
        frame = _Frame(kind, top.depth, top.function)
        start = top.lines[0] if top.lines else line
        if kind == "control":
            frame.depth += _controls(head)
            if frame.depth > self.max_depth >= top.depth and frame.function:
                frame.function.too_deep.append(start)
        if kind == "function" or (kind == "lambda" and top.function is None):
            frame.depth = 0
            frame.function = Function(name, start, 0, parameters, [])
        elif kind == "lambda":
            self.declarations.append(Function(name, line, line, parameters, []))
        self.stack.append(frame)

    def _classify(self, top, head):
        if _is_lambda(head):
            return "lambda", "lambda", _lambda_parameters(head)
        if top.parens > 0 or top.kind == "init":
            return "init", "", 0
        if not head:
            return ("block" if top.kind in _RUNS else "namespace"), "", 0
        first = head[0]
        if top.kind in _RUNS:
            if first in _CONTROL:
                return "control", "", 0
            return ("class" if first in _CLASS or first == "enum" else "init"), "", 0
        if "namespace" in head[:2] or (first == "extern" and head[1:2] == ['""']):
            return "namespace", "", 0
        if "enum" in head[:2]:
            return "init", "", 0
        if head[0] in _CLASS or head[:1] == ["friend"] and head[1:2][0] in _CLASS:
            return "class", "", 0
        signature = None if "concept" in head else _signature(head)
        if signature is None or not signature[2]:
            return "init", "", 0
        return "function", signature[0], signature[1]

    def _close(self, line):
        if len(self.stack) == 1:
            self.balanced = False
            return
        frame = self.stack.pop()
        top = self.stack[-1]
        if frame.function is not None and frame.function is not top.function:
            frame.function.end = line
            self.functions.append(frame.function)
        if frame.kind in ("init", "lambda"):
            top.add(BRACED, line)
        else:
            top.reset()

    def _declaration(self, top):
        if top.kind not in ("namespace", "class") or not top.head:
            return
        if top.head[0] in ("using", "typedef", "static_assert"):
            return
        head = _skip_template(_join_operators(_without_attributes(top.head)))
        if head[-2:-1] == ["="]:
            head = head[:-2]
        signature = _signature(head) if head else None
        if signature and not re.fullmatch(r"[A-Z][A-Z0-9_]+", signature[0]):
            line = top.lines[0]
            self.declarations.append(Function(signature[0], line, line, signature[1], []))
