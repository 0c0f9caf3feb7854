"""Requests that nobody waits for any more while they are queued, and how many rows of them ran all the same."""

import contextlib
import dataclasses
import queue

import numpy
import tritonclient.grpc

from harness import models, raw_http, server

SIZE = 96  # of the matrices: a round takes microseconds, so that a run is cut off in time
BLOCK_S, CONTROL_S = 0.3, 0.15
DEADLINE_MS = 80
LEAVING, LATE, STAYING = 4, 3, 2  # of each protocol
ROUNDS_MAX_FACTOR = 3  # rounds in which the machine was too slow are repeated, at most so often


def write(folder):
    """`single` runs one row at a time; `batched` up to four."""
    models.write(folder, "single", models.spin(SIZE), models.batching_config(1))
    models.write(folder, "batched", models.spin(SIZE), models.batching_config(4))


@dataclasses.dataclass
class Round:
    void: bool = False  # the blocker ended before all others had left
    answered: int = 0
    executed: int = 0

    @property
    def for_nobody(self):
        return self.executed - self.answered


class Rounds:
    def __init__(self, running):
        self.server = running
        self.rate = models.rounds_a_second(SIZE)
        self.grpc = tritonclient.grpc.InferenceServerClient(running.address("grpc"))

    def close(self):
        self.grpc.close()

    def executed(self, model):
        """Rows of runs that were begun (`single`), or of runs that ended well, by the statistics."""
        if model == "single":
            return int(self.server.metric("nv_inference_exec_count", model=model))
        stats = self.server.get(f"/v2/models/{model}/stats").json()["model_stats"][0]
        return sum(int(row["batch_size"]) * int(row["compute_infer"]["count"]) for row in stats["batch_stats"])

    def wait_queued(self, model, count):
        server.wait_for(lambda: self.server.metric("baton_queued_requests", model=model) == count, 10,
                        f"{count} queued requests of {model}")

    def wait_running(self, model, count):
        server.wait_for(lambda: self.server.metric("baton_running_requests", model=model) == count, 10,
                        f"{count} running requests of {model}")

    def over_http(self, model, seconds=0.0, headers=(), **parameters):
        body = raw_http.infer_body([("X", "FP32", [1, 4], [1.0] * 4),
                                    ("ROUNDS", "INT64", [1, 1], [int(seconds * self.rate)])], parameters=parameters)
        connection = raw_http.Connection(self.server.ports["http"])
        connection.send(raw_http.post(f"/v2/models/{model}/infer", body, headers))
        return connection

    def over_grpc(self, model, ends, seconds=0.0, **more):
        inputs = [tritonclient.grpc.InferInput("X", [1, 4], "FP32"),
                  tritonclient.grpc.InferInput("ROUNDS", [1, 1], "INT64")]
        inputs[0].set_data_from_numpy(numpy.ones((1, 4), numpy.float32))
        inputs[1].set_data_from_numpy(numpy.array([[int(seconds * self.rate)]], numpy.int64))
        return self.grpc.async_infer(model, inputs, lambda result, error: ends.put((result, error)), **more)

    def once(self, model):
        """A slow run, requests behind it of which most leave or expire while it lasts, and what ran in the end."""
        before, made, ends = self.executed(model), Round(), queue.Queue()
        with contextlib.ExitStack() as stack:
            blocker = stack.enter_context(self.over_http(model, BLOCK_S))
            self.wait_running(model, 1)
            leaving = [self.over_http(model) for _ in range(LEAVING)]
            cancelled = [self.over_grpc(model, queue.Queue()) for _ in range(LEAVING)]
            staying = [stack.enter_context(self.over_http(model)) for _ in range(STAYING)]
            for _ in range(STAYING):
                self.over_grpc(model, ends)
            self.wait_queued(model, 2 * (LEAVING + STAYING))
            late = [stack.enter_context(self.over_http(model, headers=[("X-Request-Timeout-Ms", DEADLINE_MS)])),
                    *(stack.enter_context(self.over_http(model, timeout=DEADLINE_MS * 1000))
                      for _ in range(LATE - 1))]
            self.over_grpc(model, ends, client_timeout=DEADLINE_MS / 1000)
            for _ in range(LATE - 1):
                self.over_grpc(model, ends, timeout=DEADLINE_MS * 1000)
            for each in leaving:
                each.close()
            for each in cancelled:
                each.cancel()
            expired = sum(each.read().status == 503 for each in late)
            made.void = expired < LATE or not self.still_runs(blocker)
            answers = [each.read().status for each in (blocker, *staying)]
            outcomes = [ends.get(timeout=30) for _ in range(STAYING + LATE)]
        self.settle()
        made.answered = answers.count(200) + sum(error is None for _, error in outcomes)
        made.executed = self.executed(model) - before
        return made

    @staticmethod
    def still_runs(blocker):
        blocker.socket.settimeout(0.02)  # what left has been seen when this is over
        try:
            blocker._more()
            return False
        except TimeoutError:
            return True
        finally:
            blocker.socket.settimeout(blocker.timeout_s)

    def control(self):
        """Rows that run although nobody waits: of clients that leave a batch while it runs."""
        before, made = self.executed("batched"), Round()
        with self.over_http("batched", CONTROL_S) as blocker:
            self.wait_running("batched", 1)
            calls = [self.over_http("batched", CONTROL_S) for _ in range(4)]
            self.wait_queued("batched", 4)
            assert blocker.read().status == 200
            self.wait_running("batched", 4)
            for each in calls[:2]:
                each.close()
            made.answered = 1 + sum(each.read().status == 200 for each in calls[2:])
            for each in calls[2:]:
                each.close()
        self.settle()
        made.executed = self.executed("batched") - before
        return made

    def settle(self):
        server.wait_for(lambda: self.server.metric("inference_requests_in_flight") == 0, 10, "nothing in flight")

    def many(self, model, count):
        """`count` rounds that are not void; AssertionError when the machine is too slow for them."""
        found, tried = [], 0
        while len(found) < count:
            assert tried < ROUNDS_MAX_FACTOR * count, f"{tried} rounds, only {len(found)} were quick enough"
            tried += 1
            made = self.once(model)
            if not made.void:
                found.append(made)
        return found
