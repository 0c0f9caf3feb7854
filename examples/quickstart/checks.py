"""What the quickstart asks and which answers it takes for right. Knows no client library."""

import itertools
import re
import time

import numpy

import files
import mlp
import ocr
import picture
import speech

SENTENCE = "Good morning. Please tell me when the next train to the sea leaves."
SEQUENCE = 7  # its id
REQUESTS = 64
ROUNDS = 5


class Report:
    """Prints sections and checks for a person; remembers whether all were right."""

    def __init__(self, write=print):
        self.write = write
        self.right = self.wrong = 0

    def section(self, title):
        self.write(f"\n  {title}")

    def note(self, text):
        self.write(f"    {text}")

    def check(self, right, text):
        self.right += bool(right)
        self.wrong += not right
        self.write(f"    {'✓' if right else '✗'} {text}")

    def guard(self, function, *arguments):
        """Runs the checks of one section; an error from the server is a wrong answer, not a traceback."""
        try:
            function(self, *arguments)
        except Exception as error:  # whatever a client library raises
            self.check(False, f"no answer: {type(error).__name__}: {error}")

    def close(self):
        total = self.right + self.wrong
        verdict = "All answers were right" if not self.wrong else f"{self.wrong} of {total} answers were wrong"
        self.write(f"\n  {verdict} ({self.right} of {total} checks passed).")
        return 0 if self.wrong == 0 and total > 0 else 1


def check_speech(report, over_http, over_grpc, out):
    spoken = speech.speak(SENTENCE, out / "sentence.wav")
    quiet = speech.silence(2.0)
    report.note(f"“{SENTENCE}” (espeak-ng, {len(spoken) / speech.RATE:.1f} s)")
    started = time.perf_counter()
    heard = speech.Listener(over_http.infer).probabilities(spoken)
    each = (time.perf_counter() - started) / len(heard)
    report.note(f"sentence │{speech.bar(heard)}│")
    silent = speech.Listener(over_http.infer).probabilities(quiet)
    report.note(f"silence  │{speech.bar(silent)}│")
    share, none = speech.spoken_share(heard), speech.spoken_share(silent)
    report.check(share >= 0.5, f"speech in {share:.0%} of the sentence's {len(heard)} frames "
                 f"(at least 50 % expected; {each * 1000:.1f} ms a frame over {over_http.name})")
    report.check(none == 0, f"speech in {none:.0%} of {len(silent)} frames of silence (none expected)")
    again = speech.Listener(over_grpc.infer).probabilities(spoken)
    report.check(numpy.array_equal(heard, again), f"the same probabilities over {over_grpc.name}, bit for bit")
    kept = speech.Listener(over_grpc.infer).streamed(spoken, SEQUENCE)
    report.check(numpy.array_equal(heard, kept), "the same as a sequence, with its state on the server, bit for bit")


def check_files(report, over_http, over_grpc, folder, labels_file):
    labels = labels_file.read_text(encoding="utf-8").split()
    for index, sample in enumerate(files.samples(folder)):
        over = (over_http, over_grpc)[index % 2]
        label, score = files.name_type(over.infer, labels, sample.content)
        right = label == sample.expected
        wanted = "" if right else f", {sample.expected} expected"
        report.check(right, f"{sample.name:<10} {len(sample.content):>6} bytes is {label:<9} "
                     f"(score {score:.2f}, over {over.name}{wanted})")


def counters(page, model):
    """(inferences, executions) of a model from a page in Prometheus' text format."""
    totals = []
    for name in ("nv_inference_count", "nv_inference_exec_count"):
        lines = re.findall(rf'^{name}{{[^}}]*model="{model}"[^}}]*}} (\S+)', page, re.MULTILINE)
        totals.append(sum(float(value) for value in lines))
    return tuple(totals)


def check_batching(report, over_http, over_grpc, read_metrics):
    rows = mlp.samples(REQUESTS)
    expected = mlp.answer(mlp.layers(), rows)
    many = [{mlp.INPUT: row[numpy.newaxis, :]} for row in rows]
    for over in (over_http, over_grpc):
        # A client on a busy machine may send too slowly to fill a batch: it gets a few rounds.
        for left in reversed(range(ROUNDS)):
            before = counters(read_metrics(), "mlp")
            started = time.perf_counter()
            results = over.infer_many("mlp", many)
            took = time.perf_counter() - started
            after = counters(read_metrics(), "mlp")
            inferences, executions = after[0] - before[0], after[1] - before[1]
            mean = inferences / executions if executions else 0
            if mean >= 2 or left == 0:
                break
        found = numpy.concatenate([result[mlp.OUTPUT] for result in results])
        worst = float(numpy.abs(found - expected).max())
        report.check(numpy.allclose(found, expected, rtol=1e-4, atol=1e-4),
                     f"{REQUESTS} answers over {over.name} in {took * 1000:.0f} ms equal numpy's "
                     f"(largest difference {worst:.1e})")
        report.check(inferences == REQUESTS and mean >= 2,
                     f"{inferences:.0f} requests ran in {executions:.0f} executions: "
                     f"{mean:.1f} requests a batch (at least 2 expected)")


def describe(line):
    """How sure the recogniser is, and how the line lies."""
    tilt = round(-numpy.degrees(line.box.angle))
    words = [f"score {line.score:.2f}"]
    words += [f"tilted by {abs(tilt)}°"] if abs(tilt) > 2 else []
    words += ["upside down"] if line.is_upside_down else []
    return ", ".join(words)


def check_lines(report, lines, expected):
    """One check a line: what is read against what was written, its direction included."""
    for written, line in itertools.zip_longest(expected, lines):
        if line is None:
            report.check(False, f"nothing read, “{written.text}” expected")
            continue
        right = (written is not None and line.text == written.text
                 and line.is_upside_down == written.is_upside_down)
        wanted = "" if right else f"; “{written.text}” expected" if written else "; no such line"
        report.check(right, f"{line.text:<38} ({describe(line)}{wanted})")


def check_ocr(report, over_http, over_grpc, read_metrics, folders):
    """`folders`: the models, and where the picture is kept."""
    models, out = folders
    image = picture.draw()
    image.save(out / "ticket.png")
    alphabet = (models / "ocr_recogniser/characters.txt").read_text(encoding="utf-8")
    characters = alphabet.removesuffix("\n").split("\n")
    before = counters(read_metrics(), "ocr_recogniser")
    started = time.perf_counter()
    lines = ocr.Reader(over_http, characters).read(image)
    took = time.perf_counter() - started
    after = counters(read_metrics(), "ocr_recogniser")
    report.note(f"ticket.png, {image.width} × {image.height}, read over {over_http.name} in {took * 1000:.0f} ms: "
                f"{after[0] - before[0]:.0f} lines at once, {after[1] - before[1]:.0f} executions")
    check_lines(report, lines, picture.TICKET)
    again = ocr.Reader(over_grpc, characters).read(image)
    same = [(line.text, line.is_upside_down) for line in lines] == [(line.text, line.is_upside_down) for line in again]
    report.check(same, f"the same {len(again)} lines over {over_grpc.name}")
