"""The logging extension by tritonclient: levels change while the server runs, the rest is told."""

import pytest
from tritonclient.utils import InferenceServerException

from harness import clients, models, server

DEFAULTS = {"log_file": "", "log_info": True, "log_warning": True, "log_error": True, "log_verbose_level": 0,
            "log_format": "ISO8601"}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logging")
    models.write_simple(folder)
    with server.Server(folder, folder=tmp_path_factory.mktemp("logging-server")) as running:
        yield running.wait_ready()


@pytest.fixture(params=clients.FLAVOURS)
def client(served, request):
    made = clients.Client(request.param, served.address(request.param.split("-")[0]))
    yield made
    made.call("update_log_settings", {"log_info": True, "log_warning": True, "log_error": True, "log_verbose_level": 0})
    made.close()


def settings(client, found):
    if client.http:
        return found
    found = found if isinstance(found, dict) else {"settings": {
        name: {value.WhichOneof("parameter_choice"): getattr(value, value.WhichOneof("parameter_choice"))}
        for name, value in found.settings.items()}}
    return {name: next(iter(value.values()), None) for name, value in found["settings"].items()}


def test_settings_are_read_and_changed(client):
    assert settings(client, client.call("get_log_settings")) == DEFAULTS
    changed = settings(client, client.call("update_log_settings", {"log_info": False, "log_verbose_level": 2}))
    assert changed == DEFAULTS | {"log_info": False, "log_verbose_level": 2}
    assert settings(client, client.call("get_log_settings")) == changed
    assert "logging" in client.call("get_server_metadata")["extensions"]


@pytest.mark.parametrize("wrong, status", [({"log_nothing": True}, "400"), ({"log_file": "/tmp/other"}, "501"),
                                           ({"log_format": "default"}, "501")])
def test_what_cannot_be_set_is_told_and_changes_nothing(client, wrong, status):
    grpc = {"400": "StatusCode.INVALID_ARGUMENT", "501": "StatusCode.UNIMPLEMENTED"}
    with pytest.raises(InferenceServerException) as error:
        client.call("update_log_settings", {"log_warning": False} | wrong)
    assert error.value.status() == (status if client.http else grpc[status])
    assert settings(client, client.call("get_log_settings")) == DEFAULTS


def test_a_level_that_is_off_writes_no_line(make_server, tmp_path):
    models.write_simple(tmp_path / "repository")
    running = make_server(tmp_path / "repository")
    assert running.request("/v2/logging", method="POST", body=b'{"log_info": false}').status == 200
    assert running.stop() == 0
    assert "stopped" not in running.log() and "is ready" in running.log()


@pytest.mark.parametrize("body", [b"", b"[]", b'{"log_verbose_level": -1}', b'{"log_info": null}',
                                  b'{"log_info": "yes"}', b'{"log_info": true, "log_info": false}'])
def test_a_body_that_is_no_settings_is_invalid(served, body):
    assert served.request("/v2/logging", method="POST", body=body).status == 400
