"""SIGHUP: what changes while serving, what is named instead, and that a wrong file changes nothing."""

import signal

import pytest

from harness import models, server


@pytest.fixture
def served(tmp_path, make_server):
    """(server, write): write(text) puts a text behind the file's beginning and sends the signal."""
    folder = tmp_path / "models"
    models.write_simple(folder)
    keys = tmp_path / "keys"
    keys.write_text("first alice\n")
    file = tmp_path / "baton.yaml"
    begin = f"version: 1\nrepositories: [{folder}]\n"
    file.write_text(f"{begin}api_keys_file: {keys}\n")
    running = make_server(arguments=["-c", file])

    def write(text=f"api_keys_file: {keys}\n", begin=begin):
        file.write_text(begin + text)
        running.process.send_signal(signal.SIGHUP)
    return running, write, keys


def said(running, text):
    server.wait_for(lambda: text in running.log(), 5, f"the log to say \"{text}\"")


def status_with(running, key):
    return running.get("/v2/models/simple", headers={"X-API-Key": key}).status


def test_keys_change_while_it_serves(served):
    running, write, keys = served
    assert status_with(running, "first") == 200 and status_with(running, "second") == 401
    keys.write_text("second bob\nthird carol\n")
    write()
    said(running, "SIGHUP: 2 API keys")
    said(running, "read again")
    assert status_with(running, "first") == 401 and status_with(running, "second") == 200


def test_wrong_keys_change_nothing(served):
    running, write, keys = served
    keys.write_text("one two three\n")
    write()
    said(running, "API keys stay")
    assert status_with(running, "first") == 200
    keys.unlink()
    write()
    said(running, "cannot be read")
    assert status_with(running, "first") == 200


def test_the_file_of_keys_may_be_another(served, tmp_path):
    running, write, _ = served
    other = tmp_path / "other"
    other.write_text("fourth dave\n")
    write(f"api_keys_file: {other}\n")
    said(running, "SIGHUP: api_keys_file is")
    said(running, "SIGHUP: 1 API keys")
    assert status_with(running, "fourth") == 200 and status_with(running, "first") == 401


def test_the_level_of_the_log_changes(served):
    running, write, keys = served
    write(f"api_keys_file: {keys}\nlog: {{ level: error }}\n")
    said(running, 'SIGHUP: log.level is "error", it was the default')
    before = running.log()
    write(f"api_keys_file: {keys}\nlog: {{ level: error }}\nunknown: 1\n")
    said(running, "nothing has changed")  # which is an error
    assert "INFO" not in running.log()[len(before):]
    write(f"api_keys_file: {keys}\nlog: {{ level: info }}\n")
    said(running, "read again")


def test_what_needs_a_restart_is_named_each_time(served):
    running, write, keys = served
    for count in (1, 2):
        write(f"api_keys_file: {keys}\nlimits: {{ in_flight: 7 }}\nshutdown: {{ drain: 9s }}\n")
        server.wait_for(lambda count=count: running.log().count("read again") == count, 5, "the file to be read")
    log = running.log()
    assert log.count("shutdown.drain stays the default until a restart; it is configured as 9000000 us") == 2
    assert log.count("limits.in_flight stays the default until a restart; it is configured as 7") == 2
    assert running.get("/readyz").status == 200


@pytest.mark.parametrize("text", ["log: { level: loud }\n", "listen: [\n", "nothing: 1\n"])
def test_a_wrong_file_changes_nothing(served, text):
    running, write, _ = served
    write(text)
    said(running, "SIGHUP: nothing has changed: ")
    assert "baton.yaml:" in running.log().split("nothing has changed: ")[1].splitlines()[0]
    assert status_with(running, "first") == 200


def test_the_access_log_may_be_moved_away(served):
    running, write, keys = served
    body = {"inputs": [{"name": name, "datatype": "INT32", "shape": [1, 16], "data": [1] * 16}
                       for name in ("INPUT0", "INPUT1")]}

    def ask():
        assert running.infer("simple", body, headers={"X-API-Key": "first"}).status == 200
    ask()
    server.wait_for(lambda: len(running.access_lines()) == 1, 5, "a line")
    moved = running.access_file.with_suffix(".1")
    running.access_file.rename(moved)
    ask()
    server.wait_for(lambda: moved.read_text().count("\n") == 2, 5, "a line where it was moved to")
    write()
    said(running, "read again")
    ask()
    server.wait_for(lambda: len(running.access_lines()) == 1, 5, "a line in the new file")
    assert moved.read_text().count("\n") == 2
