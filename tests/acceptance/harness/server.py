"""One `baton serve` as a child of the tests: started on free ports, watched, and always ended."""

import json
import os
import pathlib
import signal
import subprocess
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]
HOST = "127.0.0.1"
START_S, STOP_S = 120, 40
POLL_S = 0.02

live = []  # servers that have not been stopped; conftest shows their logs when a test fails


def binary():
    return pathlib.Path(os.environ.get("BATON_BINARY", ROOT / "build/release/baton"))


def wait_for(condition, deadline_s, what):
    """Polls until `condition()` is true and returns its value; fails after `deadline_s`."""
    end = time.monotonic() + deadline_s
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline_s} s: {what}")
        time.sleep(POLL_S)


class Answer:
    """Status, headers and body of one plain HTTP exchange."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)


class Server:
    def __init__(self, *repositories, folder, arguments=(), lame_duck_ms=0, ports=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.repositories = repositories
        self.arguments = arguments
        self.lame_duck_ms = lame_duck_ms
        self.wanted = {"http": 0, "grpc": 0, "metrics": 0} | (ports or {})
        self.log_file = self.folder / "server.log"
        self.access_file = self.folder / "access.log"
        self.ports = {}
        self.process = None
        self.killed = False
        self.expected_status = 0  # a test that ends it otherwise says so

    # -- life

    def start(self):
        ports_file = self.folder / "ports.json"
        ports_file.unlink(missing_ok=True)
        command = [binary(), "serve", *self.repositories, "--host", HOST, "--ports-file", ports_file,
                   "--access-log", self.access_file, "--lame-duck-ms", self.lame_duck_ms]
        for protocol, port in self.wanted.items():
            command += [f"--{protocol}-port", port]
        command += self.arguments
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, start_new_session=True)
        live.append(self)
        try:
            wait_for(lambda: ports_file.exists() or self.process.poll() is not None, START_S, "a ports file")
            assert self.process.poll() is None, f"baton ended with {self.process.returncode}:\n{self.log()}"
            self.ports = json.loads(ports_file.read_text())
            assert self.ports.pop("pid") == self.process.pid, "the ports file is another process's"
            for protocol, port in self.ports.items():
                assert port in self.listening(), f"the {protocol} port {port} is not this server's own listener"
        except BaseException:
            self.kill()
            raise
        return self

    def wait_ready(self, timeout_s=START_S):
        def ready():
            assert self.process.poll() is None, f"baton ended with {self.process.returncode}:\n{self.log()}"
            answer = self.get("/v2/health/ready")
            assert b" failed" not in answer.body, f"{answer.body.decode()}\n{self.log()}"
            return answer.status == 200
        wait_for(ready, timeout_s, "readiness")
        return self

    def wait_settled(self, names, timeout_s=START_S):
        """Until each of these models is ready or has failed: {name: reason or None}."""
        def settled():
            text = self.log()
            states = {name: self._state(text, name) for name in names}
            return states if all(states.values()) else None
        states = wait_for(settled, timeout_s, f"an end of loading for {list(names)}")
        return {name: None if state == "ready" else state for name, state in states.items()}

    @staticmethod
    def _state(text, name):
        found = ""
        for line in text.splitlines():
            words = line.split(f"model {name} ", 1)
            if len(words) == 1:
                continue
            rest = words[1]
            if rest.startswith("failed: ") or (rest.startswith("version ") and " failed: " in rest):
                return rest.split("failed: ", 1)[1]
            if rest.startswith("version ") and rest.endswith(" is ready"):
                found = "ready"
        return found

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def wait_exit(self, timeout_s=STOP_S):
        return self.process.wait(timeout_s)

    def stop(self):
        """SIGTERM, a bounded wait, SIGKILL; returns the exit status, None where it had to be killed."""
        if self.killed:
            return self.process.returncode if self.process.returncode >= 0 else None
        try:
            if self.process.poll() is None:
                self.terminate()
            return self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            return None
        finally:
            self.kill()

    def kill(self):
        if self in live:
            live.remove(self)
        self.killed = True
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, error, trace):
        status = self.stop()
        if kind is None:
            assert status == 0, f"baton ended with {status}:\n{self.log()[-4000:]}"

    # -- looking at it

    def address(self, protocol):
        return f"{HOST}:{self.ports[protocol]}"

    def log(self):
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def access_lines(self):
        """Complete lines of the access log, parsed."""
        text = self.access_file.read_text() if self.access_file.exists() else ""
        return [json.loads(line) for line in text.split("\n")[:-1]]

    def lines_of(self, model):
        """A model's lines once there is one for each of its requests that has ended: they come a little later."""
        ended = self.metric("baton_requests_total", model=model)

        def lines():
            found = [line for line in self.access_lines() if line["model"] == model]
            return found if len(found) >= ended else None
        return wait_for(lines, 5, f"the access log's lines of {model}") if ended else []

    def request(self, path, *, method="GET", body=None, headers=None, protocol="http", timeout_s=30):
        url = f"http://{self.address(protocol)}{path}"
        request = urllib.request.Request(url, data=body, headers=headers or {}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as answer:
                return Answer(answer.status, answer.headers, answer.read())
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.headers, error.read())

    def get(self, path, **more):
        return self.request(path, **more)

    def infer(self, model, body, version=None, **more):
        place = f"/versions/{version}" if version else ""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.request(f"/v2/models/{model}{place}/infer", method="POST", body=data, **more)

    def metrics_text(self):
        return self.get("/metrics", protocol="metrics").body.decode()

    def metric(self, name, **labels):
        """The sum of a metric's samples that have these labels."""
        return sum(number for found, has, number in parse_metrics(self.metrics_text())
                   if found == name and labels.items() <= has.items())

    def listening(self):
        """TCP ports on which this very process listens."""
        own = set()
        folder = pathlib.Path(f"/proc/{self.process.pid}/fd")
        for entry in folder.iterdir():
            try:
                target = os.readlink(entry)
            except OSError:
                continue
            if target.startswith("socket:["):
                own.add(target[8:-1])
        found = set()
        for table in ("tcp", "tcp6"):
            for line in pathlib.Path(f"/proc/{self.process.pid}/net/{table}").read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == "0A" and words[9] in own:
                    found.add(int(words[1].rsplit(":", 1)[1], 16))
        return found

    def _status_number(self, key):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1])
        raise KeyError(key)

    def rss_mib(self):
        return self._status_number("VmRSS") / 1024

    def peak_rss_mib(self):
        return self._status_number("VmHWM") / 1024

    def threads(self):
        return self._status_number("Threads")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def parse_metrics(text):
    """[(name, {label: value}, number)] of a page in Prometheus' text format; strict about what it reads."""
    samples = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if "{" in line:
            name, rest = line.split("{", 1)
            labels, number = _parse_labels(rest)
        else:
            name, number = line.split(" ", 1)
            labels = {}
        samples.append((name, labels, float(number)))
    return samples


def _parse_labels(text):
    labels, at = {}, 0
    while text[at] != "}":
        equals = text.index("=", at)
        key, at = text[at:equals], equals + 1
        assert text[at] == '"', text
        at += 1
        found = []
        while text[at] != '"':
            if text[at] == "\\":
                at += 1
                found.append({"n": "\n"}.get(text[at], text[at]))
            else:
                found.append(text[at])
            at += 1
        labels[key] = "".join(found)
        at += 1
        if text[at] == ",":
            at += 1
    return labels, text[at + 1:].strip()
