"""HTTP/2 frames by hand, for what no client library sends."""

from harness import raw_http

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, CONTINUATION = 0, 1, 3, 4, 6, 7, 9
END_STREAM, END_HEADERS = 1, 4
INFER = b"/inference.GRPCInferenceService/ModelInfer"


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def literal(name, text):
    return b"\x00" + bytes([len(name)]) + name + bytes([len(text)]) + text


def head(path=INFER, *more):
    return (b"\x83\x86" + literal(b":path", path) + literal(b":authority", b"a")
            + literal(b"content-type", b"application/grpc") + literal(b"te", b"trailers") + b"".join(more))


def message(data):
    return b"\x00" + len(data).to_bytes(4, "big") + data


class Connection(raw_http.Connection):
    """A connection that has said its preface and settings."""

    def __init__(self, port, settings=b""):
        super().__init__(port)
        self.bytes = b""
        self.send(PREFACE + frame(SETTINGS, 0, 0, settings))

    def frames(self):
        """Every frame (kind, flags, stream, payload) until the server closes."""
        while True:
            while len(self.bytes) < 9 or len(self.bytes) < 9 + int.from_bytes(self.bytes[:3], "big"):
                try:
                    more = self.socket.recv(1 << 16)
                except ConnectionError:
                    return
                if not more:
                    return
                self.bytes += more
            length = int.from_bytes(self.bytes[:3], "big")
            kind, flags, stream = self.bytes[3], self.bytes[4], int.from_bytes(self.bytes[5:9], "big")
            payload, self.bytes = self.bytes[9:9 + length], self.bytes[9 + length:]
            yield kind, flags, stream, payload

    def answer(self, stream):
        """The bytes of a call's messages, when it has ended."""
        data = b""
        for kind, flags, of, payload in self.frames():
            if of != stream:
                continue
            assert kind != RST_STREAM, payload
            if kind == DATA:
                data += payload
            if flags & END_STREAM:
                return data
        raise AssertionError("the server closed the connection")
