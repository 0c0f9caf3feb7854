"""Headers that the operator wants kept stand in the access log, over REST and gRPC; credentials never do."""

import json
import subprocess

import numpy
import pytest

from harness import clients, models, raw_http, server

PAIR = raw_http.infer_body([("INPUT0", "INT32", [1, 16], [0] * 16), ("INPUT1", "INT32", [1, 16], [1] * 16)])


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("headers")
    models.write_simple(folder)
    settings = folder / "baton.yaml"
    settings.write_text('version: 1\nforward_headers: [X-User, "x-b3-*", "auth*", "x-api*", "cook*"]\n')
    with server.Server(folder, folder=tmp_path_factory.mktemp("headers-server"),
                       arguments=("--config", settings)) as running:
        yield running.wait_ready()


def line_of(served, client_id):
    def found():
        return [line for line in served.access_lines() if line.get("client_id") == client_id]
    return server.wait_for(found, 5, "the line of " + client_id)[0]


@pytest.mark.parametrize("flavour", clients.FLAVOURS)
def test_each_flavour_of_tritonclient(served, flavour):
    client = clients.Client(flavour, served.address(flavour.split("-")[0]))
    numbers = numpy.zeros((1, 16), numpy.int32)
    client.infer("simple", {"INPUT0": numbers, "INPUT1": numbers}, request_id="id-" + flavour,
                 headers={"x-user": 'u"1', "x-b3-traceid": "t", "x-other": "o", "authorization": "Bearer secret",
                          "x-api-key": "secret", "cookie": "secret"})
    client.close()
    headers = line_of(served, "id-" + flavour)["headers"]
    assert headers["x-user"] == 'u"1' and headers["x-b3-traceid"] == "t" and "x-other" not in headers
    assert "secret" not in json.dumps(headers) and not headers.keys() & {"authorization", "x-api-key", "cookie"}


def test_without_a_match_the_line_has_none(served):
    served.request("/v2/models/simple/infer", method="POST", body=PAIR, headers={"x-request-id": "none"})
    assert "headers" not in line_of(served, "none")


def test_too_much_is_cut(served):
    many = {f"x-b3-{number:02}": "v" for number in range(20)} | {"x-user": "u" * 1000}
    served.request("/v2/models/simple/infer", method="POST", body=PAIR, headers={"x-request-id": "many"} | many)
    line = line_of(served, "many")
    assert line["headers_cut"] is True and len(line["headers"]) == 16
    served.request("/v2/models/simple/infer", method="POST", body=PAIR,
                   headers={"x-request-id": "long", "x-user": "u" * 1000})
    line = line_of(served, "long")
    assert line["headers_cut"] is True and line["headers"] == {"x-user": "u" * 256}


def test_a_refused_request_has_them_too(served):
    served.request("/v2/models/nothing/infer", method="POST", body=PAIR,
                   headers={"x-request-id": "refused", "x-user": "me"})
    assert line_of(served, "refused")["headers"] == {"x-user": "me"}


@pytest.mark.parametrize("pattern, word", [("^x-.*$", "name of a header"), ("Authorization", "credentials")])
def test_a_pattern_that_cannot_be_is_told_with_its_line(tmp_path, pattern, word):
    settings = tmp_path / "baton.yaml"
    settings.write_text(f"version: 1\nrepositories: [{tmp_path}]\nforward_headers:\n  - '{pattern}'\n")
    found = subprocess.run([server.binary(), "check", "--config", settings], capture_output=True, text=True)
    assert found.returncode != 0 and word in found.stderr and "baton.yaml:" in found.stderr
