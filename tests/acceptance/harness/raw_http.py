"""HTTP by hand: bytes out, one answer in, so that a test can send what no library would."""

import json
import socket
import time

HOST = "127.0.0.1"


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def closes(self):
        return self.headers.get("connection", "").lower() == "close"

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.body[:300]!r}>"


class Connection:
    """One socket. Every wait ends after `timeout_s`."""

    def __init__(self, port, timeout_s=20):
        self.socket = socket.create_connection((HOST, port), timeout=timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.timeout_s = timeout_s
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        """Sends all, or what the server takes before it closes."""
        try:
            self.socket.sendall(data)
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    def _more(self):
        data = self.socket.recv(65536)
        self.buffer += data
        return bool(data)

    def read_head(self):
        """(status, headers), or None when the server closed without a word."""
        while b"\r\n\r\n" not in self.buffer:
            if not self._more():
                assert not self.buffer, f"a broken answer: {self.buffer[:200]!r}"
                return None
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        headers = {}
        for line in lines[1:]:
            name, text = line.split(":", 1)
            headers[name.lower()] = text.strip()
        return int(lines[0].split(" ")[1]), headers

    def read(self, head_request=False):
        """The next final answer; None when the server closed."""
        while True:
            head = self.read_head()
            if head is None:
                return None
            status, headers = head
            if status >= 200:
                break
        length = 0 if head_request else int(headers.get("content-length", 0))
        while len(self.buffer) < length:
            assert self._more(), "the answer's body ends early"
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return Reply(status, headers, body)

    def is_closed(self, within_s=5):
        """Whether the server ends the connection, with nothing more to say."""
        end = time.monotonic() + within_s
        while time.monotonic() < end:
            self.socket.settimeout(max(end - time.monotonic(), 0.01))
            try:
                data = self.socket.recv(65536)
            except TimeoutError:
                return False
            except ConnectionResetError:
                return True
            finally:
                self.socket.settimeout(self.timeout_s)
            if not data:
                return True
        return False

    def ask(self, data):
        self.send(data)
        return self.read()


def post(path, body, headers=(), version="1.1"):
    """A well-formed POST; `headers` are (name, text) pairs put in as they are."""
    lines = [f"POST {path} HTTP/{version}", "Host: test", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {text}" for name, text in headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def get(path):
    return f"GET {path} HTTP/1.1\r\nHost: test\r\n\r\n".encode()


def chunked(path, pieces, headers=(), end=b"0\r\n\r\n"):
    lines = [f"POST {path} HTTP/1.1", "Host: test", "Transfer-Encoding: chunked"]
    lines += [f"{name}: {text}" for name, text in headers]
    body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body + end


def infer_body(inputs, **more):
    """JSON of an inference request: inputs are (name, datatype, shape, data)."""
    listed = [{"name": name, "datatype": datatype, "shape": shape, "data": data}
              for name, datatype, shape, data in inputs]
    return json.dumps({"inputs": listed} | more).encode()
