"""The rooms as src/CMakeLists.txt declares them, and which file stands in which."""

import dataclasses
import pathlib
import re

_CALL = re.compile(r"\bbaton_room\s*\(([^)]*)\)")
_KEYWORDS = ("ROOMS", "LIBS", "TEST_ROOMS", "TEST_LIBS")
ROOM_LIST = "src/CMakeLists.txt"


@dataclasses.dataclass
class Room:
    name: str
    line: int
    rooms: list
    test_rooms: list

    @property
    def kind(self):
        return self.name.split("/")[0]

    @property
    def library(self):
        return f"libbaton_{self.name.replace('/', '_')}.a"


def parse(text):
    """Returns {name: Room} in the order of declaration, and names declared twice."""
    code = re.sub(r"#[^\n]*", lambda match: " " * len(match.group()), text)
    rooms, twice = {}, []
    for match in _CALL.finditer(code):
        words = re.sub(r"\$\{[^}]*\}|\"[^\"]*\"", "x", match.group(1)).split()
        if not words or words[0] == "x":
            continue
        lists = {keyword: [] for keyword in _KEYWORDS}
        current = []
        for word in words[1:]:
            current = lists[word] if word in lists else (current.append(word) or current)
        line = code.count("\n", 0, match.start()) + 1
        if words[0] in rooms:
            twice.append((line, words[0]))
        rooms[words[0]] = Room(words[0], line, lists["ROOMS"], lists["TEST_ROOMS"])
    return rooms, twice


def load(root):
    path = pathlib.Path(root, ROOM_LIST)
    return parse(path.read_text(encoding="utf-8")) if path.exists() else ({}, [])


def room_of(relative, rooms):
    """The room of a path like `base/result.h` (relative to src), or None."""
    parts = relative.split("/")[:-1]
    for length in range(len(parts), 0, -1):
        name = "/".join(parts[:length])
        if name in rooms:
            return rooms[name]
    return None


def is_compiled(relative, rooms):
    """Whether cmake/rooms.cmake picks a .cc up: nested folders only for rooms with a slash."""
    room = room_of(relative, rooms)
    if room is None:
        return False
    inside = relative[len(room.name) + 1 :]
    return "/" not in inside or "/" in room.name


def is_test(relative):
    return relative.endswith("_test.cc")


def is_testing_support(relative):
    return "/testing/" in f"/{relative}"


def source_files(root):
    """Every .h and .cc below src, as paths relative to src, sorted."""
    folder = pathlib.Path(root, "src")
    found = [path for path in folder.rglob("*") if path.suffix in (".h", ".cc") and path.is_file()]
    return sorted(path.relative_to(folder).as_posix() for path in found)
