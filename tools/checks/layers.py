"""Who may include whom: the table of docs/architecture, the link lists, the heavy headers."""

import fnmatch
import pathlib
import re

from checks import rooms as house
from checks import source
from checks.report import Allowlist, Finding

# Room kind -> what its ROOMS list may name. A name stands for itself and for the rooms below it.
TABLE = {
    "base": (),
    "domain": ("base",),
    "policy": ("base", "domain"),
    "protocol": ("base", "domain", "protocol/json"),
    "ports": ("base", "domain"),
    "service": ("base", "domain", "policy", "protocol", "ports", "service"),
    "adapters": ("base", "domain", "protocol", "ports"),
    "sim": ("base", "domain", "policy", "protocol", "ports", "service"),
    "app": ("base", "domain", "policy", "protocol", "ports", "service", "adapters", "sim"),
}
# These speak over one transport; nothing else may be shared between adapters.
SHARED_TRANSPORT = {
    "adapters/grpc": "adapters/transport",
    "adapters/http": "adapters/transport",
    "adapters/engine_http": "adapters/transport",
    "adapters/tls": "adapters/transport",
}

# Headers that cost seconds per file or drag a library's types along, by family.
HEAVY = {
    "asio": r"boost/asio(\.hpp|/).*",
    "beast": r"boost/beast(\.hpp|/).*",
    "grpc": r"(grpcpp|grpc|grpc\+\+)/.*|.*\.grpc\.pb\.h",
    "protobuf": r"google/(protobuf|rpc)/.*|.*(?<!\.grpc)\.pb\.h",
    "cli11": r"CLI/.*",
    "simdjson": r"simdjson\.h|simdjson/.*",
    "yaml": r"yaml-cpp/.*",
    "onnxruntime": r"(.*/)?onnxruntime_.*\.h",
    "sqlite": r"sqlite3(ext)?\.h",
}
HEAVY = {family: re.compile(pattern) for family, pattern in HEAVY.items()}
HEAVY_LIST = "tools/allow/heavy_headers.txt"


def _covers(allowed, name):
    return any(name == entry or name.startswith(entry + "/") for entry in allowed)


def check_table(rooms, twice):
    """The link lists against the architecture's table, unknown rooms, cycles."""
    for line, name in twice:
        yield Finding(house.ROOM_LIST, line, "room-list", f"room {name} is declared twice")
    for room in rooms.values():
        if room.kind not in TABLE:
            message = f"{room.name} is in no layer; the layers are {', '.join(TABLE)}"
            yield Finding(house.ROOM_LIST, room.line, "layer", message)
            continue
        allowed = TABLE[room.kind]
        for name in room.rooms + room.test_rooms:
            if name not in rooms:
                message = f"{room.name} lists {name}, which is no room"
                yield Finding(house.ROOM_LIST, room.line, "room-list", message)
        for name in room.rooms:
            if name == room.name:
                message = f"{room.name} lists itself"
                yield Finding(house.ROOM_LIST, room.line, "cycle", message)
            elif not _covers(allowed, name) and SHARED_TRANSPORT.get(room.name) != name:
                message = f"{room.name} may not use {name}; {room.kind} may use " + (
                    ", ".join(allowed) or "no other room"
                )
                yield Finding(house.ROOM_LIST, room.line, "layer", message)
    yield from check_cycles(rooms)


def check_cycles(rooms):
    done, path = set(), []

    def visit(name):
        if name in done or name not in rooms:
            return
        if name in path:
            loop = " -> ".join(path[path.index(name) :] + [name])
            cycles.setdefault(frozenset(path[path.index(name) :]), (rooms[name].line, loop))
            return
        path.append(name)
        for dependency in rooms[name].rooms:
            if dependency != name:
                visit(dependency)
        path.pop()
        done.add(name)

    cycles = {}
    for name in rooms:
        visit(name)
    for line, loop in cycles.values():
        yield Finding(house.ROOM_LIST, line, "cycle", f"rooms include each other: {loop}")


class HeavyHeaders:
    """Who may include a heavy header: `FAMILY WHERE reason`, or `limit FAMILY-or-A+B N reason`.

    WHERE is a room (its .cc files) or a path below src, which may be a header and may hold `*`.
    """

    def __init__(self, root, rooms, files):
        self.list = Allowlist(root, HEAVY_LIST, 2)
        self.findings = list(self.list.findings)
        self.entries = []
        self.limits = []
        for entry in self.list.entries:
            first, second = entry.fields
            if first == "limit":
                self._read_limit(entry, second)
            elif first not in HEAVY:
                self._complain(entry, f"no such family: {first}; there are {', '.join(HEAVY)}")
            elif second in rooms:
                self.entries.append((first, second, entry, True))
                mine = [name for name in files if house.room_of(name, rooms) is rooms[second]]
                entry.used = not any(name.endswith(".cc") for name in mine)  # not built yet
            else:
                self.entries.append((first, second, entry, False))

    def _complain(self, entry, message):
        entry.used = True
        self.findings.append(Finding(HEAVY_LIST, entry.line, "allowlist", message))

    def _read_limit(self, entry, families):
        count, _, reason = entry.reason.partition(" ")
        entry.used = True
        names = families.split("+")
        if not count.isdigit() or not reason or any(name not in HEAVY for name in names):
            self._complain(entry, "a limit is `limit FAMILY[+FAMILY] NUMBER reason`")
        else:
            self.limits.append((entry, names, int(count)))

    def family_of(self, name):
        return next((family for family, regex in HEAVY.items() if regex.fullmatch(name)), None)

    def allows(self, family, relative, room):
        found = False
        for entry_family, where, entry, is_room in self.entries:
            if entry_family != family:
                continue
            if is_room:
                match = room is not None and where == room.name and relative.endswith(".cc")
            else:
                match = fnmatch.fnmatchcase(relative, where)
            if match:
                entry.used = found = True
        return found

    def check_limits(self, reached):
        """reached: {.cc file: families its includes reach, through our own headers too}."""
        for entry, names, limit in self.limits:
            users = sorted(path for path, families in reached.items() if families & set(names))
            if len(users) > limit:
                message = f"{'+'.join(names)} reaches {len(users)} .cc files, the limit is {limit}: "
                yield Finding(HEAVY_LIST, entry.line, "heavy-limit", message + ", ".join(users))


class IncludeCheck:
    def __init__(self, root, rooms):
        self.root = root
        self.rooms = rooms
        self.files = house.source_files(root)
        self.known = set(self.files)
        self.heavy = HeavyHeaders(root, rooms, self.files)
        self.own_includes = {}  # file -> project files it includes
        self.own_heavy = {}  # file -> heavy families it includes itself

    def run(self):
        for relative in self.files:
            text = pathlib.Path(self.root, "src", relative).read_text(encoding="utf-8")
            room = house.room_of(relative, self.rooms)
            if room is None:
                message = f"src/{relative} is in no room of {house.ROOM_LIST}"
                yield Finding(f"src/{relative}", 1, "no-room", message)
            self.own_includes[relative] = []
            self.own_heavy[relative] = set()
            for line, quoted, name in source.includes(source.parse(relative, text)):
                yield from self._check_include(relative, room, line, quoted, name)
        yield from self.heavy.findings
        yield from self.heavy.check_limits(self._reached())
        yield from self.heavy.list.stale()

    def _check_include(self, relative, room, line, quoted, name):
        path = f"src/{relative}"
        family = self.heavy.family_of(name)
        if family is not None:
            self.own_heavy[relative].add(family)
            if not self.heavy.allows(family, relative, room):
                message = f"<{name}> is a heavy header ({family}); {HEAVY_LIST} does not list this file"
                yield Finding(path, line, "heavy-header", message)
            return
        if name not in self.known:
            if quoted:
                message = f'"{name}" is no file below src; write the path from src, other headers in <>'
                yield Finding(path, line, "include-path", message)
            return
        if not quoted:
            yield Finding(path, line, "include-path", f'our own header <{name}> goes in ""')
        self.own_includes[relative].append(name)
        if room is not None:
            yield from self._check_room(relative, room, line, name)

    def _check_room(self, relative, room, line, name):
        path = f"src/{relative}"
        other = house.room_of(name, self.rooms)
        support = house.is_testing_support(relative)
        if house.is_testing_support(name):
            if not (house.is_test(relative) or support or room.kind == "sim"):
                yield Finding(path, line, "testing-header", f"{name} is for tests only")
                return
            if house.is_test(relative):
                return
        if name.endswith(".cc"):
            yield Finding(path, line, "include-path", f"{name} is a source file")
        if other is None or other is room:
            return
        allowed = room.rooms + (room.test_rooms if house.is_test(relative) or support else [])
        if other.name not in allowed:
            message = f"{name} is in {other.name}, which {room.name} does not list in {house.ROOM_LIST}"
            yield Finding(path, line, "room-include", message)

    def _reached(self):
        reached = {}
        for start in self.files:
            if not start.endswith(".cc"):
                continue
            seen, todo, families = {start}, [start], set()
            while todo:
                current = todo.pop()
                families |= self.own_heavy.get(current, set())
                for name in self.own_includes.get(current, []):
                    if name not in seen:
                        seen.add(name)
                        todo.append(name)
            reached[start] = families
        return reached
