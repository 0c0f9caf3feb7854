"""Silero VAD: a sentence, frame by frame, with the state that one frame hands to the next."""

import dataclasses
import subprocess
import wave

import numpy

RATE = 16000
FRAME, CONTEXT = 512, 64  # the model sees 576 samples: 64 of the frame before, 512 new ones
THRESHOLD = 0.5
_BARS = " ▁▂▃▄▅▆▇█"


def speak(text, path):
    """Has espeak-ng say a text; returns float32 samples at 16 kHz."""
    subprocess.run(["espeak-ng", "-s", "150", "-w", str(path), text], check=True)
    with wave.open(str(path)) as sound:
        rate = sound.getframerate()
        samples = numpy.frombuffer(sound.readframes(sound.getnframes()), dtype="<i2")
    return resample(samples.astype(numpy.float32) / 32768, rate)


def resample(samples, rate):
    """Band-limited resampling to 16 kHz, in the frequency domain."""
    if rate == RATE:
        return samples
    count = round(len(samples) * RATE / rate)
    spectrum = numpy.fft.rfft(samples)[: count // 2 + 1]
    if len(spectrum) < count // 2 + 1:
        spectrum = numpy.pad(spectrum, (0, count // 2 + 1 - len(spectrum)))
    return (numpy.fft.irfft(spectrum, count) * (count / len(samples))).astype(numpy.float32)


def silence(seconds):
    """Room noise some 66 dB below full scale, seeded."""
    random = numpy.random.Generator(numpy.random.PCG64(3))
    return random.standard_normal(int(seconds * RATE), dtype=numpy.float32) * numpy.float32(0.0005)


def frames(samples):
    """What the model sees of each frame, but for its state."""
    context = numpy.zeros(CONTEXT, dtype=numpy.float32)
    for start in range(0, len(samples) - FRAME + 1, FRAME):
        window = numpy.concatenate([context, samples[start : start + FRAME]])
        context = window[-CONTEXT:]
        yield {"input": window[numpy.newaxis, :], "sr": numpy.array(RATE, dtype=numpy.int64)}


@dataclasses.dataclass
class Listener:
    """Streams samples through the model. `infer(model, inputs)` returns {output: array}."""

    infer: object

    def probabilities(self, samples):
        state = numpy.zeros((2, 1, 128), dtype=numpy.float32)
        result = []
        for inputs in frames(samples):
            outputs = self.infer("silero_vad", inputs | {"state": state})
            result.append(float(outputs["output"][0, 0]))
            state = outputs["stateN"]
        return numpy.array(result, dtype=numpy.float32)

    def streamed(self, samples, sequence):
        """The same as one sequence, whose state stays on the server."""
        windows = list(frames(samples))
        result = []
        for index, inputs in enumerate(windows):
            outputs = self.infer("silero_vad_stream", inputs, sequence_id=sequence, sequence_start=index == 0,
                                 sequence_end=index == len(windows) - 1)
            result.append(float(outputs["output"][0, 0]))
        return numpy.array(result, dtype=numpy.float32)


def spoken_share(probabilities):
    return float((probabilities > THRESHOLD).mean())


def bar(probabilities, width=64):
    """One character a stretch of time, as high as its speech probability."""
    parts = numpy.array_split(probabilities, min(width, len(probabilities)))
    return "".join(_BARS[round(float(part.mean()) * (len(_BARS) - 1))] for part in parts)
