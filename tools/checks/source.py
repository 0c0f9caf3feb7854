"""Splits C++ text into code and comments, keeping line numbers."""

import dataclasses
import re

_TOKEN = re.compile(
    r"""
      (?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
    | (?P<raw>(?:u8|[uUL])?R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)")
    | (?P<string>"(?:\\.|[^"\\\n])*")
    | (?P<number>(?<![\w'])\.?\d(?:'?[\w.])*)
    | (?P<char>'(?:\\.|[^'\\\n])+')
    """,
    re.DOTALL | re.VERBOSE,
)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)


@dataclasses.dataclass
class Source:
    path: str
    text: str
    code: str  # comments blanked, strings and characters emptied
    comments: list  # (line, text)

    def line_of(self, offset):
        return self.code.count("\n", 0, offset) + 1


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


def parse(path, text):
    comments = []
    pieces = []
    position = 0
    line = 1
    for match in _TOKEN.finditer(text):
        between = text[position : match.start()]
        pieces.append(between)
        line += between.count("\n")
        token = match.group()
        if match.lastgroup == "comment":
            for offset, part in enumerate(token.split("\n")):
                comments.append((line + offset, part))
            pieces.append(_blank(token))
        elif match.lastgroup == "number":
            pieces.append(token.replace("'", " "))
        else:
            quote = token[-1]
            pieces.append(quote + _blank(token[1:-1]) + quote)
        line += token.count("\n")
        position = match.end()
    pieces.append(text[position:])
    return Source(path, text, "".join(pieces), comments)


def includes(source):
    """Yields (line, quoted, name). Commented-out includes do not count."""
    for match in _INCLUDE.finditer(source.text):
        hash_at = source.text.index("#", match.start())
        if source.code[hash_at] == "#":
            yield source.text.count("\n", 0, hash_at) + 1, match.group(1) == '"', match.group(2)


def without_directives(code):
    """Blanks preprocessor lines, continuation lines included."""
    return re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", lambda m: _blank(m.group()), code, flags=re.MULTILINE)
