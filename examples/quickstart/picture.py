"""Draws the ticket that the quickstart reads: lines of several sizes, one upside down, one stamped askew.

The typeface is the one that Pillow carries, so nothing has to be installed and every machine draws alike.
"""

import dataclasses

from PIL import Image, ImageDraw, ImageFont

SIZE = (640, 448)
PAPER, INK, FAINT, STAMP = (250, 247, 238), (30, 34, 48), (96, 104, 120), (172, 32, 44)


@dataclasses.dataclass(frozen=True)
class Line:
    text: str
    middle: tuple  # x, y in pixels
    height: int  # of the typeface, pixels
    colour: tuple = INK
    turn: float = 0  # degrees, against the clock

    @property
    def is_upside_down(self):
        return 90 < self.turn % 360 < 270


# Top to bottom.
TICKET = (
    Line("Northern Coast Railway", (320, 54), 44),
    Line("Single ticket to the sea", (320, 118), 32),
    Line("Departs 09:47 from platform 6", (320, 178), 28),
    Line("PAID 12.50", (500, 250), 38, STAMP, 12),
    Line("Coach C, seat 21", (170, 262), 28),
    Line("Please keep this ticket until the end", (320, 342), 24, FAINT),
    Line("Tear off here before boarding", (320, 404), 26, INK, 180),
)


def _patch(line):
    """The line alone, turned, as a mask."""
    font = ImageFont.load_default(line.height)
    left, top, right, bottom = font.getbbox(line.text)
    mask = Image.new("L", (int(right - left) + 4, int(bottom - top) + 4))
    ImageDraw.Draw(mask).text((2 - left, 2 - top), line.text, font=font, fill=255)
    return mask.rotate(line.turn, Image.Resampling.BICUBIC, expand=True)


def draw(lines=TICKET, size=SIZE):
    """The lines on paper, as an RGB image."""
    image = Image.new("RGB", size, PAPER)
    for line in lines:
        mask = _patch(line)
        corner = tuple(round(at - side / 2) for at, side in zip(line.middle, mask.size))
        image.paste(line.colour, (*corner, corner[0] + mask.width, corner[1] + mask.height), mask)
    return image
