"""Sizes, names, banned calls by layer, dead files, READMEs, words in comments."""

import dataclasses
import pathlib
import re
import subprocess

from checks import functions, source
from checks import rooms as house
from checks.report import Allowlist, Finding

STYLE_LIST = "tools/allow/style.txt"
MAX_FUNCTION, MAX_FILE, MAX_HEADER, MAX_NESTING, MAX_PARAMETERS = 70, 800, 300, 3, 5
MAX_LINE, MAX_LINE_OTHER = 100, 120  # C++; Python

CPP_FOLDERS = ("src", "fuzz", "bench", "tests", "examples")
PYTHON_FOLDERS = ("tools", "tests", "examples", "bench", "fuzz")
_FILE_NAME = re.compile(r"[a-z][a-z0-9_]*\.(h|cc)")
_TODO = re.compile(r"\b(TODO|FIXME|XXX)\b(?!\(#\d+\))")
_WORDS = re.compile(
    r"\b(hack(s|y|ish)?|obviously|simply|basically|of course|now we|previously|as you can see"
    r"|needless to say|just works)\b",
    re.IGNORECASE,
)
_MACHINE_PATH = re.compile(r"(?<![\w.$}~*)\]-])/(?:work|home|root|Users)/[\w.]")
_TEXT = re.compile(
    r".*(\.(h|cc|py|sh|cmake|txt|md|yaml|yml|json|toml|proto|ts|js|css|html|pbtxt|service)"
    r"|/[^./]+)"
)


@dataclasses.dataclass(frozen=True)
class Ban:
    rule: str
    pattern: re.Pattern
    instead: str
    exempt: tuple  # room kinds
    tests_exempt: bool = True


def _ban(rule, pattern, instead, exempt=(), tests_exempt=True):
    return Ban(rule, re.compile(pattern), instead, exempt, tests_exempt)


BANS = (
    _ban("sleep", r"\b(sleep_for|sleep_until)\b|(?<![\w.>])(usleep|nanosleep|sleep)\s*\(",
         "ports/timers.h; a test moves its clock", ("adapters", "app"), False),
    _ban("thread", r"\bstd::(jthread|thread|async)\b(?!::id)|\bpthread_create\b",
         "a port: threads belong to adapters and app", ("adapters", "app")),
    _ban("clock", r"_clock::now\b|\b(clock_gettime|gettimeofday)\s*\(|(?<![\w.>])time\s*\(\s*(nullptr|NULL|0)\s*\)",
         "ports/clock.h, or take `now` as an argument"),
    _ban("assert", r"(?<![\w.>])assert\s*\(", "CHECK from base/check.h, which release builds keep",
         (), False),
    _ban("random", r"(?<![\w.>])s?rand\s*\(|\bstd::(random_device|mt19937|minstd_rand|ranlux|default_random_engine"
         r"|\w+_distribution|shuffle|random_shuffle)\b", "base/random.h, seeded and handed in", (), False),
    _ban("print", r"(?<![\w.>])(?:std::)?(v?f?printf|puts|putchar|fputs|perror)\s*\(|\bstd::(cout|cerr|clog)\b"
         r"|\bfmt::print(ln)?\b", "ports/log.h; only app prints", ("app",)),
    _ban("throw", r"\bthrow\b", "base::Result (base/result.h)"),
    _ban("regex", r"\bstd::(basic_)?regex\w*\b", "a hand-written scan: std::regex recurses on input", (), False),
    _ban("raw-memory", r"\breinterpret_cast\b", "std::bit_cast, std::as_bytes or a helper in base"),
    _ban("lock", r"\bstd::(recursive_|shared_|timed_)*(mutex|scoped_lock|lock_guard|unique_lock|shared_lock)\b"
         r"|\bstd::condition_variable\w*\b", "the caller's side holds the lock (architecture, contract 2)",
         ("base", "protocol", "ports", "sim", "adapters", "app")),
    _ban("io-header", r"#\s*include\s*<(iostream|fstream|filesystem|thread|sys/socket\.h|unistd\.h)>",
         "a port, implemented by an adapter", ("adapters", "app")),
)


class StyleCheck:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.rooms, _ = house.load(root)
        self.allow = Allowlist(root, STYLE_LIST, 2)
        self.findings = list(self.allow.findings)
        self.tracked = self._tracked()
        self.included = set()
        self.checked = 0

    def run(self):
        cpp = [path for path in self.tracked if path.endswith((".h", ".cc"))]
        for path in cpp:
            if path.split("/")[0] in CPP_FOLDERS:
                self._check_cpp(path)
        for path in self.tracked:
            folder = path.split("/")[0]
            if path.endswith(".py") or (folder == "tools" and self._is_python(path)):
                self._check_python(path)
            self._check_machine_paths(path)
        self._check_dead([path for path in cpp if path.startswith("src/")])
        self._check_readmes()
        self.findings += self.allow.stale()
        return self.findings

    def _tracked(self):
        """Files that git tracks or would; the whole tree where git is not used."""
        command = ["git", "-C", self.root, "ls-files", "-co", "--exclude-standard"]
        own = (self.root / ".git").exists()
        listed = subprocess.run(command, capture_output=True, text=True, check=False) if own else None
        if listed is not None and listed.returncode == 0:
            names = listed.stdout.splitlines()
        else:
            names = [path.relative_to(self.root).as_posix() for path in self.root.rglob("*")]
        return sorted(name for name in names if (self.root / name).is_file())

    def _read(self, path):
        return (self.root / path).read_text(encoding="utf-8", errors="replace")

    def _is_python(self, path):
        return "." not in path.rsplit("/")[-1] and self._read(path)[:80].startswith("#!/usr/bin/env python3")

    def _add(self, path, line, rule, message, name=None):
        """Adds a finding unless the allowlist has the file, the function in it, or a folder of it."""
        places = [path] + ([f"{path}#{name}"] if name else [])
        parts = path.split("/")
        places += ["/".join(parts[:count]) + "/" for count in range(1, len(parts))]
        if not self.allow.allows(*((rule, place) for place in places)):
            self.findings.append(Finding(path, line, rule, message))

    def _check_cpp(self, path):
        self.checked += 1
        text = self._read(path)
        parsed = source.parse(path, text)
        for _, quoted, name in source.includes(parsed):
            if quoted:
                self.included.add((name, path))
        self._check_sizes(path, text, MAX_HEADER if path.endswith(".h") else MAX_FILE, MAX_LINE)
        if not _FILE_NAME.fullmatch(path.rsplit("/")[-1]):
            self._add(path, 1, "file-name", "file names are snake_case and end in .h or .cc")
        self._check_functions(path, parsed)
        self._check_comments(path, parsed)
        if path.startswith("src/"):
            self._check_bans(path, parsed)

    def _check_sizes(self, path, text, limit, columns):
        lines = text.split("\n")
        count = len(lines) - (lines[-1] == "")
        if count > limit:
            self._add(path, count, "file-length", f"{count} lines, the limit is {limit}")
        for number, line in enumerate(lines, 1):
            if len(line) > columns:
                message = f"{len(line)} columns, the limit is {columns}"
                self._add(path, number, "line-length", message)

    def _check_functions(self, path, parsed):
        scan = functions.Scanner(parsed.code, MAX_NESTING).run()
        if not scan.balanced:
            self._add(path, 1, "braces", "braces do not balance, so functions cannot be measured")
            return
        for function in scan.functions:
            if function.length > MAX_FUNCTION:
                message = f"{function.name} has {function.length} lines, the limit is {MAX_FUNCTION}"
                self._add(path, function.line, "function-length", message, function.name)
            for line in function.too_deep:
                message = f"{function.name} nests deeper than {MAX_NESTING} control structures"
                self._add(path, line, "nesting", message, function.name)
        for function in scan.functions + scan.declarations:
            if function.parameters > MAX_PARAMETERS:
                message = (f"{function.name} has {function.parameters} parameters, the limit is "
                           f"{MAX_PARAMETERS}; then an options struct")
                self._add(path, function.line, "parameters", message, function.name)

    def _check_comments(self, path, parsed):
        for line, text in parsed.comments:
            if _TODO.search(text):
                self._add(path, line, "todo", "name the issue: TODO(#12)")
            match = _WORDS.search(text)
            if match:
                message = f"`{match.group()}`: comments say why in the present tense, without rhetoric"
                self._add(path, line, "comment-word", message)

    def _check_bans(self, path, parsed):
        relative = path.removeprefix("src/")
        kind = relative.split("/")[0]
        for ban in BANS:
            testing = house.is_test(relative) or house.is_testing_support(relative)
            if kind in ban.exempt or (testing and ban.tests_exempt):
                continue
            if ban.rule == "clock" and kind in ("adapters", "app") and "clock" in path.rsplit("/")[-1]:
                continue
            for match in ban.pattern.finditer(parsed.code):
                message = f"`{match.group().strip()}` is banned here; instead: {ban.instead}"
                self._add(path, parsed.line_of(match.start()), ban.rule, message)

    def _check_python(self, path):
        self.checked += 1
        self._check_sizes(path, self._read(path), MAX_FILE, MAX_LINE_OTHER)

    def _check_machine_paths(self, path):
        if not _TEXT.fullmatch("/" + path) or path.startswith("fuzz/corpus/"):
            return
        text = self._read(path)
        for match in _MACHINE_PATH.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            message = "an absolute path of one machine; write it relative to the repository"
            self._add(path, line, "machine-path", message)

    def _check_dead(self, files):
        for path in files:
            relative = path.removeprefix("src/")
            if path.endswith(".h"):
                if not any((relative, user) in self.included for user in self._users(relative)):
                    self._add(path, 1, "dead-file", "no other file includes this header")
            elif house.room_of(relative, self.rooms) is None:
                self._add(path, 1, "dead-file", f"in no room of {house.ROOM_LIST}, so never compiled")
            elif not house.is_compiled(relative, self.rooms):
                message = "in a nested folder of a room that compiles only its own"
                self._add(path, 1, "dead-file", message)

    def _users(self, relative):
        return {user for name, user in self.included if name == relative and user != f"src/{relative}"}

    def _check_readmes(self):
        for room in self.rooms.values():
            folder = self.root / "src" / room.name
            if not folder.is_dir():
                message = f"room {room.name} is declared, but src/{room.name} does not exist"
                self._add(house.ROOM_LIST, room.line, "room-folder", message, room.name)
                continue
            readme = folder / "README.md"
            path = f"src/{room.name}/README.md"
            if not readme.exists():
                self._add(path, 1, "readme", "missing: purpose, invariants, threads, what it must not do")
                continue
            lines = [line for line in self._read(path).splitlines() if line.strip()]
            if len(lines) < 3:
                self._add(path, 1, "readme", "too short: purpose, invariants, threads, what it must not do")
            elif lines[0] != f"# {room.name}":
                self._add(path, 1, "readme", f"begins with the line `# {room.name}`")
