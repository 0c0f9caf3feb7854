"""Requests over HTTP that are wrong, by what is wrong with them; all but the heads are for the model `simple`."""

from harness import raw_http

INFER = "/v2/models/simple/infer"
ONES = b",".join([b"1"] * 16)


def tensor(name="INPUT0", datatype="INT32", shape="[1,16]", data=None, more=""):
    data = b"[" + ONES + b"]" if data is None else data
    text = f'{{"name":"{name}","datatype":"{datatype}","shape":{shape},"data":'.encode()
    return text + data + more.encode() + b"}"


def request(*inputs, more=""):
    return b'{"inputs":[' + b",".join(inputs) + b"]" + more.encode() + b"}"


GOOD = request(tensor("INPUT0"), tensor("INPUT1"))

BODIES = {
    "empty": b"",
    "no object": b"[]",
    "a number": b"7",
    "truncated": GOOD[:-5],
    "cut in a string": GOOD[:14],
    "trailing garbage": GOOD + b"x",
    "a second document": GOOD + GOOD,
    "trailing NUL": GOOD + b"\0",
    "a broken tail behind the inputs": GOOD[:-1] + b',"more":[1,2,}',
    "an unknown key with a broken value": GOOD[:-1] + b',"more":tru}',
    "duplicate key": GOOD[:-1] + b',"inputs":[]}',
    "duplicate key in an input": request(tensor(more=',"shape":[1,16]'), tensor("INPUT1")),
    "duplicate key in parameters": GOOD[:-1] + b',"parameters":{"priority":1,"priority":1}}',
    "duplicate key by escape": GOOD[:-1] + b',"id":"a","\\u0069d":"b"}',
    "comment": b"/**/" + GOOD,
    "single quotes": GOOD.replace(b'"', b"'"),
    "not UTF-8": GOOD[:-1] + b',"id":"\xff\xfe"}',
    "lone surrogate": GOOD[:-1] + b',"id":"\\ud800"}',
    "UTF-16": GOOD.decode().encode("utf-16"),
    "control character in a string": GOOD[:-1] + b',"id":"a\nb"}',
    "NaN": request(tensor(data=b"[" + ONES[:-1] + b"NaN]"), tensor("INPUT1")),
    "leading zeros": request(tensor(data=b"[" + ONES[:-1] + b"01]"), tensor("INPUT1")),
    "hexadecimal": request(tensor(data=b"[" + ONES[:-1] + b"0x1]"), tensor("INPUT1")),
    "no inputs": b'{"outputs":[]}',
    "inputs empty": b'{"inputs":[]}',
    "inputs no array": b'{"inputs":{}}',
    "an input no object": b'{"inputs":[1,2]}',
    "name missing": GOOD.replace(b'"name":"INPUT0",', b""),
    "name a number": GOOD.replace(b'"INPUT0"', b"7"),
    "name with NUL": GOOD.replace(b'"INPUT0"', b'"INPUT0\\u0000"'),
    "name twice": request(tensor("INPUT0"), tensor("INPUT0")),
    "three times": request(tensor("INPUT0"), tensor("INPUT1"), tensor("INPUT1")),
    "unknown input": request(tensor("INPUT0"), tensor("OTHER")),
    "datatype missing": GOOD.replace(b'"datatype":"INT32",', b"", 1),
    "datatype unknown": GOOD.replace(b"INT32", b"INT33", 1),
    "datatype lower case": GOOD.replace(b"INT32", b"int32", 1),
    "datatype of another": GOOD.replace(b"INT32", b"FP32", 1),
    "datatype null": GOOD.replace(b'"INT32"', b"null", 1),
    "shape missing": GOOD.replace(b'"shape":[1,16],', b"", 1),
    "shape a number": GOOD.replace(b"[1,16]", b"16", 1),
    "shape negative": GOOD.replace(b"[1,16]", b"[-1,16]", 1),
    "shape -1 and -16": GOOD.replace(b"[1,16]", b"[-1,-16]", 1),
    "shape fractional": GOOD.replace(b"[1,16]", b"[1.0,16]", 1),
    "shape zero": GOOD.replace(b"[1,16]", b"[0,16]", 1),
    "shape beyond 64 bits": GOOD.replace(b"[1,16]", b"[1,18446744073709551616]", 1),
    "shape product overflows": GOOD.replace(b"[1,16]", b"[4294967296,4294967296]", 1),
    "shape product wraps to 16": GOOD.replace(b"[1,16]", b"[9223372036854775808,32]", 1),
    "shape product times size overflows": GOOD.replace(b"[1,16]", b"[1,4611686018427387904]", 1),
    "shape of 10,000 dimensions": GOOD.replace(b"[1,16]", b"[" + b"1," * 10_000 + b"16]", 1),
    "data missing": GOOD.replace(b',"data":[' + ONES + b"]", b"", 1),
    "data null": GOOD.replace(b"[" + ONES + b"]", b"null", 1),
    "data a string": GOOD.replace(b"[" + ONES + b"]", b'"AAAA"', 1),
    "data too short": GOOD.replace(ONES, ONES[2:], 1),
    "data too long": GOOD.replace(ONES, ONES + b",1", 1),
    "data with an object": GOOD.replace(ONES, ONES[:-1] + b"{}", 1),
    "data twice nested differently": GOOD.replace(ONES, b"[1,[2]]," + ONES, 1),
    "data beyond the type": GOOD.replace(ONES, ONES[:-1] + b"3000000000", 1),
    "data of mixed kinds": GOOD.replace(ONES, ONES[:-1] + b'"1"', 1),
    "data and binary_data_size": GOOD.replace(b'"name":"INPUT0"',
                                              b'"name":"INPUT0","parameters":{"binary_data_size":64}'),
    "binary_data_size without bytes": GOOD.replace(b',"data":[' + ONES + b"]",
                                                   b',"parameters":{"binary_data_size":64}', 1),
    "binary_data_size negative": GOOD.replace(b',"data":[' + ONES + b"]", b',"parameters":{"binary_data_size":-64}', 1),
    "binary_data_size huge": GOOD.replace(b',"data":[' + ONES + b"]",
                                          b',"parameters":{"binary_data_size":18446744073709551615}', 1),
    "binary_data_size a string": GOOD.replace(b',"data":[' + ONES + b"]",
                                              b',"parameters":{"binary_data_size":"64"}', 1),
    "parameters no object": GOOD[:-1] + b',"parameters":[]}',
    "timeout negative": GOOD[:-1] + b',"parameters":{"timeout":-1}}',
    "timeout a string": GOOD[:-1] + b',"parameters":{"timeout":"1"}}',
    "timeout beyond 64 bits": GOOD[:-1] + b',"parameters":{"timeout":18446744073709551616}}',
    "timeout of 585,000 years": GOOD[:-1] + b',"parameters":{"timeout":18446744073709551615}}',
    "priority negative": GOOD[:-1] + b',"parameters":{"priority":-1}}',
    "priority beyond the levels": GOOD[:-1] + b',"parameters":{"priority":4294967297}}',
    "reserved parameter": GOOD[:-1] + b',"parameters":{"triton_final":1}}',  # server#8763
    "id a number": GOOD[:-1] + b',"id":7}',
    "outputs no array": GOOD[:-1] + b',"outputs":{}}',
    "an output without a name": GOOD[:-1] + b',"outputs":[{}]}',
    "unknown output": GOOD[:-1] + b',"outputs":[{"name":"X"}]}',
    "an output twice": GOOD[:-1] + b',"outputs":[{"name":"OUTPUT0"},{"name":"OUTPUT0"}]}',
    "nested 2,000 deep": b'{"inputs":' + b"[" * 2000 + b"]" * 2000 + b"}",  # server#8770
    "nested 2,000 deep where ignored": GOOD[:-1] + b',"more":' + b"[" * 2000 + b"]" * 2000 + b"}",
    "data nested 2,000 deep": GOOD.replace(ONES, b"[" * 2000 + ONES + b"]" * 2000, 1),
    "opened a million times": b"[" * 1_000_000,
    "objects opened 100,000 times": b'{"a":' * 100_000,
    "5,000 inputs": request(*[tensor(f"I{index}") for index in range(5000)]),
    "5,000 outputs": GOOD[:-1] + b',"outputs":[' + b",".join([b'{"name":"OUTPUT0"}'] * 5000) + b"]}",
}

HEADS = {
    "no request line": (b"\r\n\r\n\r\n\r\n\r\n\r\nnothing\r\n\r\n", {400}),
    "two words": (b"GET /livez\r\nHost: t\r\n\r\n", {400}),
    "HTTP/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400, 505}),
    "TLS hello": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32), {400}),
    "unknown version": (b"GET /livez HTTP/3.0\r\nHost: t\r\n\r\n", {505}),
    "lower case version": (b"GET /livez http/1.1\r\nHost: t\r\n\r\n", {400}),
    "bare line feeds": (b"GET /livez HTTP/1.1\nHost: t\n\n", {400}),
    "NUL in the target": (b"GET /li\0vez HTTP/1.1\r\nHost: t\r\n\r\n", {400}),
    "NUL in a header": (b"GET /livez HTTP/1.1\r\nHost: t\r\nA: b\0c\r\n\r\n", {400}),
    "NUL in a name": (b"GET /livez HTTP/1.1\r\nHost: t\r\nA\0: b\r\n\r\n", {400}),
    "blank before the colon": (b"GET /livez HTTP/1.1\r\nHost: t\r\nContent-Length : 5\r\n\r\n", {400}),
    "folded header": (b"GET /livez HTTP/1.1\r\nHost: t\r\nA: b\r\n c\r\n\r\n", {400}),
    "no colon": (b"GET /livez HTTP/1.1\r\nHost: t\r\nnonsense\r\n\r\n", {400}),
    "no host": (b"GET /livez HTTP/1.1\r\n\r\n", {400}),
    "two hosts": (b"GET /livez HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", {400}),
    "CONNECT": (b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", {400, 405, 501}),
    "carriage return alone": (b"GET /livez HTTP/1.1\rHost: t\r\n\r\n", {400}),
    "target of 20,000 bytes": (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: t\r\n\r\n", {414}),
    "header of 100,000 bytes": (b"GET /livez HTTP/1.1\r\nHost: t\r\nA: " + b"a" * 100_000 + b"\r\n\r\n", {431}),
    "5,000 headers": (b"GET /livez HTTP/1.1\r\nHost: t\r\n" + b"A: b\r\n" * 5000 + b"\r\n", {431}),
    "method of 1,000 bytes": (b"A" * 1000 + b" /livez HTTP/1.1\r\nHost: t\r\n\r\n", {400, 501}),
    "unknown expectation": (b"POST /v2/models/simple/infer HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\n"
                            b"Expect: the-unexpected\r\n\r\n", {417}),
    "content length negative": (b"POST /livez HTTP/1.1\r\nHost: t\r\nContent-Length: -1\r\n\r\n", {400}),
    "content length signed": (b"POST /livez HTTP/1.1\r\nHost: t\r\nContent-Length: +1\r\n\r\n1", {400}),
    "content length hexadecimal": (b"POST /livez HTTP/1.1\r\nHost: t\r\nContent-Length: 0x1\r\n\r\n1", {400}),
    "content length beyond 64 bits": (b"POST /livez HTTP/1.1\r\nHost: t\r\n"
                                      b"Content-Length: 18446744073709551617\r\n\r\n", {400, 413}),
    "content length of 2^63": (b"POST /livez HTTP/1.1\r\nHost: t\r\nContent-Length: 9223372036854775808\r\n\r\n",
                               {400, 413}),
    "content length twice": (b"POST /livez HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n12345",
                             {400}),
    "content length as a list": (b"POST /livez HTTP/1.1\r\nHost: t\r\nContent-Length: 5, 5\r\n\r\n12345", {400}),
    "content length twice and different": (b"POST /livez HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n"
                                           b"Content-Length: 6\r\n\r\n123456", {400}),
    "length and chunks": (b"POST /livez HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
                          b"0\r\n\r\n", {400}),
    "chunks twice": (b"POST /livez HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n"
                     b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", {400}),
    "chunked, chunked": (b"POST /livez HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
                         {400, 501}),
    "chunked, identity": (b"POST /livez HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
                          {400, 501}),
    "gzip, chunked": (b"POST /livez HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
                      {400, 501}),
    "xchunked": (b"POST /livez HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", {400, 501}),
    "chunked with a vertical tab": (b"POST /livez HTTP/1.1\r\nHost: t\r\nTransfer-Encoding:\x0bchunked\r\n\r\n"
                                    b"0\r\n\r\n", {400, 501}),
    "chunked in HTTP/1.0": (b"POST /livez HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", {400, 501}),
}

CHUNKS = {
    "no size": b"\r\nabc\r\n0\r\n\r\n",
    "size negative": b"-1\r\nabc\r\n0\r\n\r\n",
    "size with 0x": b"0x3\r\nabc\r\n0\r\n\r\n",
    "size with blanks": b" 3\r\nabc\r\n0\r\n\r\n",
    "size beyond 64 bits": b"10000000000000003\r\nabc\r\n0\r\n\r\n",
    "size of 2^64-1": b"ffffffffffffffff\r\nabc\r\n0\r\n\r\n",
    "size of 500 digits": b"0" * 500 + b"3\r\nabc\r\n0\r\n\r\n",
    "data longer than its size": b"3\r\nabcd\r\n0\r\n\r\n",
    "line feed alone": b"3\nabc\n0\n\n",
    "NUL in the extension": b"3;a=\0\r\nabc\r\n0\r\n\r\n",
    "line feed in the extension": b"3;a=\nb\r\nabc\r\n0\r\n\r\n",
    "extension of 100,000 bytes": b"3;" + b"a" * 100_000 + b"\r\nabc\r\n0\r\n\r\n",
    "bad trailer": b"0\r\nnonsense\r\n\r\n",
    "trailers of 100,000 bytes": b"0\r\n" + b"A: b\r\n" * 17_000 + b"\r\n",
}


def connections():
    """{name: (bytes of a whole connection, statuses that are right)}: one of each kind."""
    chunked = f"POST {INFER} HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    found = {f"body: {name}": (raw_http.post(INFER, body), {400}) for name, body in BODIES.items()}
    found |= {f"head: {name}": case for name, case in HEADS.items()}
    return found | {f"chunks: {name}": (chunked + data, range(400, 500)) for name, data in CHUNKS.items()}
