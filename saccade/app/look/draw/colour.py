"""From white to dark blue: one hue, evenly darker, so that it survives printing and colour
blindness.
"""

from colorsys import hls_to_rgb, rgb_to_hls

STOPS = ((255, 255, 255), (198, 219, 239), (107, 174, 214), (33, 113, 181), (8, 48, 107))


def shade(weight: float) -> tuple[int, int, int]:
    """The colour of a weight from 0 to 1."""
    place = min(max(weight, 0.0), 1.0) * (len(STOPS) - 1)
    low = min(int(place), len(STOPS) - 2)
    part = place - low
    red, green, blue = (round(a + part * (b - a)) for a, b in zip(STOPS[low], STOPS[low + 1]))
    return red, green, blue


def ink(weight: float) -> tuple[int, int, int]:
    """What can be read on that colour."""
    return (255, 255, 255) if weight > 0.55 else (20, 24, 32)


def night(colour: str) -> str:
    """What a colour is on a dark ground: its hue, as dark as it was light."""
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    hue, light, strength = rgb_to_hls(red, green, blue)
    turned = hls_to_rgb(hue, 0.08 + 0.84 * (1 - light**1.5), 0.8 * strength)
    return "#" + "".join(f"{round(255 * part):02x}" for part in turned)
