"""Fixtures: servers on generated and real models, clients of every flavour, logs of what failed."""

import os
import pathlib
import resource
import subprocess
import sys

import pytest

sys.dont_write_bytecode = True
os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # of the Python package; baton sees to its own
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from harness import clients, models, server  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
NO_GRPC = "gRPC is not served yet: the ports file has no \"grpc\" key"


def pytest_configure(config):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:  # some tests hold thousands of connections
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 20_000), hard))
    config.addinivalue_line("markers", "slow: takes more than half a minute")


def pytest_collection_modifyitems(items):
    if os.access(server.binary(), os.X_OK):
        return
    skip = pytest.mark.skip(reason="no baton binary; `make build` builds it, BATON_BINARY names one")
    for item in items:
        item.add_marker(skip)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for running in server.live:
            lines = running.log().splitlines()[-25:]
            report.sections.append((f"server log of {running.folder.name}", "\n".join(lines)))


def pytest_sessionfinish():
    for running in list(server.live):
        running.kill()


@pytest.fixture(scope="session")
def general_models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("general")
    models.write_general(folder)
    return folder


@pytest.fixture(scope="session")
def general(general_models, tmp_path_factory):
    """A server with one model of every kind."""
    with server.Server(general_models, folder=tmp_path_factory.mktemp("general-server")) as running:
        yield running.wait_ready()


@pytest.fixture(scope="session")
def real_models():
    subprocess.run([ROOT / "tools" / "quickstart", "prepare"], check=True)
    return ROOT / "examples" / "quickstart" / "models"


@pytest.fixture(scope="session")
def real(real_models, tmp_path_factory):
    """A server with the quickstart's models."""
    with server.Server(real_models, folder=tmp_path_factory.mktemp("real-server")) as running:
        yield running.wait_ready()


@pytest.fixture
def make_server(tmp_path):
    """Starts servers that end with the test: make_server(repository, ..., arguments=..., ready=True)."""
    started = []

    def start(*repositories, ready=True, **more):
        running = server.Server(*repositories, folder=tmp_path / f"server{len(started)}", **more)
        started.append(running)
        running.start()
        return running.wait_ready() if ready else running
    yield start
    ends = [(running, running.stop()) for running in started]
    for running, status in ends:
        assert status == running.expected_status, f"baton ended with {status}:\n{running.log()[-4000:]}"


def connect(running, flavour, json=False):
    protocol = flavour.split("-")[0]
    if protocol not in running.ports:
        pytest.skip(NO_GRPC)
    return clients.Client(flavour, running.address(protocol), json)


@pytest.fixture(scope="session", params=[*clients.FLAVOURS, "http-json"])
def flavour(request):
    return request.param


@pytest.fixture(scope="session")
def client(general, flavour):
    """tritonclient on the general server, in each of its flavours, over HTTP also with JSON tensors."""
    made = connect(general, flavour.removesuffix("-json"), flavour.endswith("-json"))
    yield made
    made.close()
