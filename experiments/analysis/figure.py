"""Draws a small SVG picture with axes, lines, bars and a legend, for scripts that use no plotting library."""
import html
import math

# Okabe and Ito's palette, safe for color blindness; dashes distinguish lines in print.
colors = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999"]
dashes = ["", "6 3", "2 2", "8 3 2 3"]
width, height, left, right, top, bottom = 760, 420, 70, 190, 40, 50


def round_steps(low, high, wanted=6):
    """Returns about `wanted` round numbers from low to high."""
    span = (high - low) or abs(high) or 1
    power = 10 ** math.floor(math.log10(span / wanted))
    step = next(power * times for times in (1, 2, 5, 10) if span / (power * times) <= wanted)
    return [step * i for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


class Figure:
    def __init__(self, title, across, up, x_span, y_span):
        self.parts, self.legend = [], []
        self.x_span, self.y_span = [(low, high if high > low else low + 1) for low, high in (x_span, y_span)]
        self.title = title
        self.text(left, 24, title, size=16)
        self.text((left + width - right) / 2, height - 12, across, anchor="middle")
        self.text(8, top - 4, up)
        for value in round_steps(*self.y_span):
            self.line([(self.x_span[0], value), (self.x_span[1], value)], "#cccccc", thickness=1)
            self.text(left - 6, self.y(value) + 4, f"{value:.6g}", anchor="end")

    def x(self, value):
        low, high = self.x_span
        return left + (value - low) / (high - low) * (width - left - right)

    def y(self, value):
        low, high = self.y_span
        return height - bottom - (value - low) / (high - low) * (height - top - bottom)

    def text(self, x, y, words, anchor="start", size=12):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
                          f'font-size="{size}">{html.escape(str(words))}</text>')

    def line(self, points, color, dash="", thickness=2):
        path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{thickness}" '
                          f'stroke-dasharray="{dash}"/>')

    def bar(self, x, thick, low, high, color, about):
        self.parts.append(f'<rect x="{self.x(x - thick / 2):.1f}" y="{self.y(high):.1f}" '
                          f'width="{self.x(thick) - self.x(0):.1f}" '
                          f'height="{self.y(low) - self.y(high):.1f}" '
                          f'fill="{color}"><title>{html.escape(about)}</title></rect>')

    def entry(self, words, color, dash=""):
        y = top + 10 + 18 * len(self.legend)
        self.legend.append(words)
        self.parts.append(f'<line x1="{width - right + 12}" x2="{width - right + 36}" y1="{y}" y2="{y}" stroke="{color}" '
                          f'stroke-width="4" stroke-dasharray="{dash}"/>')
        self.text(width - right + 42, y + 4, words)

    def save(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
                       f'font-family="sans-serif">\n'
                       f"<title>{html.escape(self.title)}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
                       + "\n".join(self.parts) + "\n</svg>\n")
        print(f"picture {path}")
