"""PP-OCRv4: the lines of text in a picture. Three models in a row, with the client's own work between them.

    ocr_detector    the picture -> for each pixel, how likely it is the core of a line of text
    ocr_classifier  a line cut out -> upright or upside down
    ocr_recogniser  a line cut out, upright -> for each step along it, how likely each character is

Every line is a request of its own and all go out at once: the server makes batches of those that have
the same shape, which is why widths are padded to a few sizes. Lines may be tilted by up to 45 degrees,
either way up; vertical lines are not read.
"""

import dataclasses
import math

import numpy
from PIL import Image

SIDE_STEP, LONGEST_SIDE = 32, 960  # what the detector halves five times; where it becomes slow
CORE, LINE = 0.3, 0.5  # least probability of a pixel of a core; least mean of a core
GROWTH = 1.6  # a core grows by its area / its perimeter times this
SMALLEST_SIDE = 3  # pixels of a core; less is a speck
LINE_HEIGHT, LINE_WIDTH = 48, 192  # what the classifier sees of a line
WIDTH_STEP, LONGEST_LINE = 160, 3200  # widths that the recogniser sees
UPSIDE_DOWN = 0.9
BLANK = 0  # the class that separates characters


@dataclasses.dataclass(frozen=True)
class Box:
    """A rectangle in the picture: pixels, and radians with the clock."""

    middle: tuple
    width: float
    height: float
    angle: float


@dataclasses.dataclass(frozen=True)
class Line:
    text: str
    score: float  # mean probability of its characters
    box: Box
    is_upside_down: bool


class Reader:
    """`infer(model, inputs)` and `infer_many(model, [inputs])` return {output: array}; `characters` is
    the recogniser's alphabet, in the order of its classes, without the blank."""

    def __init__(self, over, characters):
        self.over = over
        self.characters = characters

    def read(self, image):
        """The lines of an RGB image, from top to bottom."""
        boxes = self.find(image)
        lines = [cut(image, box) for box in boxes]
        turned = self.upside_down(lines)
        lines = [line.rotate(180) if turn else line for line, turn in zip(lines, turned)]
        return [Line(text, score, box, turn)
                for (text, score), box, turn in zip(self.recognise(lines), boxes, turned)]

    def find(self, image):
        """Boxes around the lines of text."""
        scale = min(1, LONGEST_SIDE / max(image.size))
        size = [max(round(side * scale / SIDE_STEP), 1) * SIDE_STEP for side in image.size]
        probabilities = first(self.over.infer("ocr_detector", {"x": tensor(image.resize(size))}))[0, 0]
        factors = [side / resized for side, resized in zip(image.size, size)]
        boxes = [resize(grow(box), factors) for box in cores(probabilities)]
        return sorted(boxes, key=lambda box: box.middle[1])

    def upside_down(self, lines):
        """For each line whether it must be turned."""
        many = [{"x": line_tensor(line, LINE_WIDTH)} for line in lines]
        answers = self.over.infer_many("ocr_classifier", many)
        return [bool(first(answer)[0, 1] > UPSIDE_DOWN) for answer in answers]

    def recognise(self, lines):
        """[(text, score)]"""
        many = [{"x": line_tensor(line, padded_width(line))} for line in lines]
        return [decode(first(answer)[0], self.characters)
                for answer in self.over.infer_many("ocr_recogniser", many)]


def first(outputs):
    """The only output of a model; its name is an accident of its conversion."""
    return next(iter(outputs.values()))


def tensor(image):
    """float32 [1, 3, height, width] in [-1, 1]; blue first, as the models were trained."""
    pixels = numpy.asarray(image, dtype=numpy.float32)[:, :, ::-1]
    return numpy.ascontiguousarray((pixels / 127.5 - 1).transpose(2, 0, 1)[numpy.newaxis])


def width_of(line):
    """Its width once it is as high as the models want it."""
    return math.ceil(LINE_HEIGHT * line.width / line.height)


def padded_width(line):
    return min(-(-width_of(line) // WIDTH_STEP) * WIDTH_STEP, LONGEST_LINE)


def line_tensor(line, width):
    """float32 [1, 3, 48, width]: the line at its left, squeezed if it is longer, zeros at its right."""
    filled = min(width_of(line), width)
    result = numpy.zeros((1, 3, LINE_HEIGHT, width), dtype=numpy.float32)
    result[..., :filled] = tensor(line.resize((filled, LINE_HEIGHT), Image.Resampling.BICUBIC))
    return result


def runs_of(row):
    """[(first, end)] of a row of booleans: where it is true."""
    edges = numpy.flatnonzero(numpy.diff(row.astype(numpy.int8), prepend=0, append=0))
    return [(int(begin), int(end)) for begin, end in edges.reshape(-1, 2)]


def regions(mask):
    """Connected regions of a mask, corners included: a list of [(y, first x, end x)] each."""
    parents, runs, above = [], [], []

    def root(index):
        while parents[index] != index:
            index = parents[index]
        return index

    for y, row in enumerate(mask):
        current = []
        for begin, end in runs_of(row):
            index = len(runs)
            runs.append((y, begin, end))
            parents.append(index)
            current.append(index)
            for other in above:
                if begin <= runs[other][2] and end >= runs[other][1]:
                    parents[root(other)] = root(index)
        above = current
    found = {}
    for index, run in enumerate(runs):
        found.setdefault(root(index), []).append(run)
    return list(found.values())


def smallest_box(points):
    """The rectangle of least area, turned by at most 45 degrees, around points [n, 2] of x and y."""
    angles = numpy.radians(numpy.linspace(-45, 45, 181))
    along = points @ numpy.stack([numpy.cos(angles), numpy.sin(angles)])
    across = points @ numpy.stack([-numpy.sin(angles), numpy.cos(angles)])
    widths, heights = numpy.ptp(along, axis=0), numpy.ptp(across, axis=0)
    best = int(numpy.argmin(widths * heights))
    u, v = (float(side[:, best].min() + side[:, best].max()) / 2 for side in (along, across))
    angle = float(angles[best])
    cos, sin = math.cos(angle), math.sin(angle)
    return Box((u * cos - v * sin, u * sin + v * cos), float(widths[best]), float(heights[best]), angle)


def cores(probabilities):
    """Boxes of the regions of a map [height, width] that are likely enough."""
    boxes = []
    for runs in regions(probabilities > CORE):
        points = numpy.array([(x, y) for top, *ends in runs for x in ends for y in (top, top + 1)])
        box = smallest_box(points)
        mean = numpy.concatenate([probabilities[y, begin:end] for y, begin, end in runs]).mean()
        if mean >= LINE and min(box.width, box.height) >= SMALLEST_SIDE:
            boxes.append(box)
    return boxes


def grow(box):
    """The detector marks the core of a line: its edges lie further out, on all sides alike."""
    margin = GROWTH * box.width * box.height / (box.width + box.height)  # area / perimeter * 2 sides
    return dataclasses.replace(box, width=box.width + margin, height=box.height + margin)


def resize(box, factors):
    """From the detector's pixels to the picture's; the two factors are almost equal."""
    x, y = (at * factor for at, factor in zip(box.middle, factors))
    return Box((x, y), box.width * factors[0], box.height * factors[1], box.angle)


def cut(image, box):
    """The box's content, level. Outside of the picture all is black."""
    size = (max(round(box.width), 1), max(round(box.height), 1))
    cos, sin = math.cos(box.angle), math.sin(box.angle)
    left = box.middle[0] - (cos * size[0] - sin * size[1]) / 2
    top = box.middle[1] - (sin * size[0] + cos * size[1]) / 2
    return image.transform(size, Image.Transform.AFFINE, (cos, -sin, left, sin, cos, top),
                           Image.Resampling.BICUBIC)


def decode(steps, characters):
    """(text, score) of probabilities [steps, classes]: repeats are one character, blanks separate."""
    best = steps.argmax(axis=1)
    kept = (best != BLANK) & (best != numpy.concatenate([[BLANK], best[:-1]]))
    score = float(steps.max(axis=1)[kept].mean()) if kept.any() else 0.0
    return "".join(characters[index - 1] for index in best[kept]), score
