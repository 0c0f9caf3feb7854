"""What the compiled pure rooms ask of the system: no clock, chance, thread, socket, file or sleep."""

import pathlib
import re
import shutil
import subprocess

from checks import rooms as house
from checks.report import Allowlist, Finding

SYMBOL_LIST = "tools/allow/symbols.txt"
PURE = ("base", "domain", "policy", "service", "sim")
LOCKLESS = ("domain", "policy", "service")

# What it is -> (pattern over mangled names, what to use instead).
BANNED = {
    "clock": (
        r"clock_gettime|clock|gettimeofday|time|timespec_get|ftime|localtime(_r)?|gmtime"
        r"|_ZNSt6chrono.*clock3nowE.*",
        "take `now` as an argument, or ports/clock.h",
    ),
    "chance": (
        r"_ZNSt13random_device.*|s?rand|rand_r|s?random|[demn]?rand48|arc4random.*|getrandom|getentropy",
        "base/random.h, handed in",
    ),
    "thread": (
        r"pthread_create|thrd_create|_ZNSt6thread.*|_ZNSt7jthread.*|fork|vfork|clone|posix_spawnp?|system",
        "threads belong to app and adapters",
    ),
    "socket": (
        r"socket(pair)?|connect|bind|listen|accept4?|send(to|msg|mmsg)?|recv(from|msg|mmsg)?"
        r"|getaddrinfo|gethostby.*|epoll_.*|poll|ppoll|p?select|eventfd|io_uring_.*",
        "a port, implemented by an adapter",
    ),
    "file": (
        r"open(at)?(64)?|creat(64)?|f(re)?open(64)?|fdopen|p?readv?(64)?|p?writev?(64)?|opendir|unlink(at)?"
        r"|mkdir(at)?|rename(at)?|l?stat(64)?|fstat(64)?|mmap(64)?|getenv|secure_getenv"
        r"|_ZNSt13basic_filebuf.*|_ZNSt14basic_[io]fstream.*|_ZNSt13basic_fstream.*"
        r"|_ZNSt10filesystem(?!7__cxx114path).*",
        "a port, implemented by an adapter",
    ),
    "sleep": (
        r"u?sleep|(clock_)?nanosleep|alarm|setitimer|timerfd_.*|timer_create|thrd_sleep"
        r"|_ZNSt11this_thread.*",
        "ports/timers.h",
    ),
    "dlopen": (r"dlm?open|dlsym", "a port, implemented by an adapter"),
}
LOCK = (
    r"pthread_(mutex|rwlock|spin|cond)_.*|sem_wait|_ZNSt(18condition_variable|3_V222condition).*",
    "the lock belongs to the caller's side (architecture, contract 2)",
)


def _compile(kind):
    banned = dict(BANNED)
    if kind in LOCKLESS:
        banned["lock"] = LOCK
    return [(what, re.compile(pattern), instead) for what, (pattern, instead) in banned.items()]


def undefined_symbols(archive, nm):
    """Names an archive needs from outside itself, with the object that needs each first."""
    result = subprocess.run(
        [nm, "--format=posix", "-A", archive], capture_output=True, text=True, check=True
    )
    needed, defined = {}, set()
    for line in result.stdout.splitlines():
        match = re.match(r".*\[(.+?)\]: (\S+) (\w)", line) or re.match(r"(.+?): (\S+) (\w)", line)
        if not match:
            continue
        member, name, kind = match.groups()
        name = name.split("@")[0]
        if kind in "Uw":
            needed.setdefault(name, member)
        else:
            defined.add(name)
    return {name: member for name, member in needed.items() if name not in defined}


def check_objects(root, folder, rooms):
    nm = shutil.which("nm") or shutil.which("llvm-nm-19")
    if nm is None:
        raise SystemExit("check_layers: nm is missing; run `tools/bootstrap build`")
    allow = Allowlist(root, SYMBOL_LIST, 2)
    yield from allow.findings
    archives = {path.name: path for path in sorted(pathlib.Path(root, folder).rglob("libbaton_*.a"))}
    files = house.source_files(root)
    for room in rooms.values():
        if room.kind not in PURE:
            continue
        compiled = [
            name
            for name in files
            if name.endswith(".cc") and not house.is_test(name) and not name.endswith("/main.cc")
            and house.room_of(name, rooms) is room and house.is_compiled(name, rooms)
        ]
        if not compiled:
            continue
        if room.library not in archives:
            message = f"{room.library} is not below {folder}; build {room.name} first"
            yield Finding(house.ROOM_LIST, room.line, "objects", message)
            continue
        yield from _check_archive(room, archives[room.library], nm, allow)
    yield from allow.stale()


def _check_archive(room, archive, nm, allow):
    banned = _compile(room.kind)
    for symbol, member in undefined_symbols(archive, nm).items():
        for what, pattern, instead in banned:
            if pattern.fullmatch(symbol) and not allow.allows((room.name, symbol)):
                message = f"{room.name} ({member}) uses {symbol}, a {what} symbol; instead: {instead}"
                yield Finding(house.ROOM_LIST, room.line, "symbol", message)
