"""tritonclient's four flavours behind one call: infer(model, {name: array}, ...) -> Result."""

import asyncio
import concurrent.futures
import contextlib
import dataclasses
import threading

import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio
from tritonclient.utils import np_to_triton_dtype

TIMEOUT_S = 30
FLAVOURS = ("http", "grpc", "http-aio", "grpc-aio")


@dataclasses.dataclass
class Result:
    arrays: dict
    id: str
    model: str
    version: str
    datatypes: dict


class Client:
    """One flavour. `json` asks for JSON tensors both ways, which only HTTP has."""

    def __init__(self, flavour, address, json=False):
        self.flavour = flavour
        self.http = flavour.startswith("http")
        self.aio = flavour.endswith("aio")
        self.json = json
        self.library = tritonclient.http if self.http else tritonclient.grpc
        self._loop = _Loop() if self.aio else None
        self.raw = self.run(self._make(address)) if self.aio else self._make_plain(address)

    def _make_plain(self, address):
        if self.http:
            return self.library.InferenceServerClient(
                address, concurrency=32, network_timeout=TIMEOUT_S, connection_timeout=TIMEOUT_S)
        return self.library.InferenceServerClient(address)

    async def _make(self, address):
        return self.library.aio.InferenceServerClient(address)

    def run(self, awaitable):
        return self._loop.run(awaitable)

    def call(self, name, *arguments, **more):
        """A method of the client, awaited where the flavour is asynchronous."""
        if not self.http and name.startswith("get_"):
            more["as_json"] = True
        method = getattr(self.raw, name)
        if not self.aio:
            return method(*arguments, **more)

        async def awaited():
            return await method(*arguments, **more)
        return self.run(awaited())

    def close(self):
        if self.aio:
            with contextlib.suppress(Exception):
                self.call("close")
            self._loop.stop()
        else:
            self.raw.close()

    # -- inference

    def inputs(self, arrays):
        made = []
        for name, array in arrays.items():
            item = self.library.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
            if self.http:
                item.set_data_from_numpy(array, binary_data=not self.json)
            else:
                item.set_data_from_numpy(array)
            made.append(item)
        return made

    def outputs(self, names):
        if names is None:
            return None
        if self.http:
            return [self.library.InferRequestedOutput(name, binary_data=not self.json) for name in names]
        return [self.library.InferRequestedOutput(name) for name in names]

    def infer(self, model, arrays, outputs=None, **more):
        if not self.http:
            more.setdefault("client_timeout", TIMEOUT_S)
        return self.result(self.call("infer", model, self.inputs(arrays), outputs=self.outputs(outputs), **more))

    def infer_many(self, model, many, outputs=None):
        """All requests at once; results in the order of the requests."""
        if self.aio:
            async def together():
                calls = [self.raw.infer(model, self.inputs(arrays), outputs=self.outputs(outputs))
                         for arrays in many]
                return await asyncio.gather(*calls)
            return [self.result(answer) for answer in self.run(together())]
        if self.http:
            calls = [self.raw.async_infer(model, self.inputs(arrays), outputs=self.outputs(outputs))
                     for arrays in many]
            return [self.result(call.get_result(timeout=TIMEOUT_S)) for call in calls]
        return self._grpc_many(model, many, outputs)

    def _grpc_many(self, model, many, outputs):
        futures = []
        for arrays in many:
            future = concurrent.futures.Future()

            def done(result, error, future=future):
                future.set_exception(error) if error else future.set_result(result)
            self.raw.async_infer(model, self.inputs(arrays), done, outputs=self.outputs(outputs),
                                 client_timeout=TIMEOUT_S)
            futures.append(future)
        return [self.result(future.result(TIMEOUT_S)) for future in futures]

    def result(self, answer):
        response = answer.get_response()
        if self.http:
            listed = response["outputs"]
            types = {item["name"]: item["datatype"] for item in listed}
            head = (response.get("id", ""), response["model_name"], response["model_version"])
        else:
            types = {item.name: item.datatype for item in response.outputs}
            head = (response.id, response.model_name, response.model_version)
        return Result({name: answer.as_numpy(name) for name in types}, *head, types)


class _Loop:
    """An event loop on its own thread, so that one test body serves all flavours."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def run(self, awaitable):
        return asyncio.run_coroutine_threadsafe(awaitable, self.loop).result(TIMEOUT_S * 4)

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(TIMEOUT_S)
        self.loop.close()
