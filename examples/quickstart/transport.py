"""tritonclient's two flavours behind one call: infer(model, {name: array}) -> {name: array}."""

import asyncio
import queue

import tritonclient.grpc
import tritonclient.http
import tritonclient.http.aio
from tritonclient.utils import np_to_triton_dtype

TIMEOUT_S = 60


def _inputs(library, arrays):
    result = []
    for name, array in arrays.items():
        item = library.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
        item.set_data_from_numpy(array)
        result.append(item)
    return result


class Http:
    name = "HTTP"

    def __init__(self, address):
        self.address = address
        self.client = tritonclient.http.InferenceServerClient(
            address, network_timeout=TIMEOUT_S, connection_timeout=TIMEOUT_S
        )

    def _arrays(self, result):
        return {item["name"]: result.as_numpy(item["name"]) for item in result.get_response()["outputs"]}

    def infer(self, model, arrays, **more):
        return self._arrays(self.client.infer(model, _inputs(tritonclient.http, arrays), **more))

    def infer_many(self, model, many):
        """All requests at once; results in the order of the requests.

        The aio client, since async_infer of the other one waits 10 ms after each request.
        """
        return asyncio.run(self._infer_many(model, many))

    async def _infer_many(self, model, many):
        async with tritonclient.http.aio.InferenceServerClient(
            self.address, conn_limit=len(many), conn_timeout=TIMEOUT_S
        ) as client:
            calls = [client.infer(model, _inputs(tritonclient.http, arrays)) for arrays in many]
            return [self._arrays(result) for result in await asyncio.gather(*calls)]


class Grpc:
    name = "gRPC"

    def __init__(self, address):
        self.client = tritonclient.grpc.InferenceServerClient(address)

    def _arrays(self, result):
        return {item.name: result.as_numpy(item.name) for item in result.get_response().outputs}

    def infer(self, model, arrays, **more):
        inputs = _inputs(tritonclient.grpc, arrays)
        return self._arrays(self.client.infer(model, inputs, client_timeout=TIMEOUT_S, **more))

    def infer_many(self, model, many):
        done = queue.Queue()
        for index, arrays in enumerate(many):
            inputs = _inputs(tritonclient.grpc, arrays)
            callback = lambda result, error, index=index: done.put((index, result, error))  # noqa: E731
            self.client.async_infer(model, inputs, callback, client_timeout=TIMEOUT_S)
        results = [None] * len(many)
        for _ in many:
            index, result, error = done.get(timeout=TIMEOUT_S)
            if error is not None:
                raise error
            results[index] = self._arrays(result)
        return results
