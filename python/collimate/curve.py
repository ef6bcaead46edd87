"""A curve that grows in a notebook while a run goes on."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 560, 200, 56, 24, 22
COLORS = ("#3566c4", "#c4633a", "#3a8f58", "#8455b5")


class LiveCurve:
    """A callback of `train` that shows metrics by their names, each as a line over the iterations.

    In a notebook the picture is drawn again with every iteration; `svg()` gives it anywhere.
    """

    def __init__(self, *names: str):
        self.names = names
        self.points: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
        self.handle: Any = None

    def __call__(self, metrics: Mapping[str, float]) -> None:
        for name in self.names:
            value = metrics.get(name, float("nan"))
            if abs(value) < float("inf"):
                self.points[name].append((metrics["step"], value))
        self.show()

    def show(self) -> None:
        try:
            from IPython.display import HTML, display
        except ModuleNotFoundError:  # no notebook
            return
        if self.handle is None:
            self.handle = display(HTML(self.svg()), display_id=True)
        else:
            self.handle.update(HTML(self.svg()))

    def svg(self) -> str:
        steps = [step for line in self.points.values() for step, _ in line] or [0]
        values = [value for line in self.points.values() for _, value in line] or [0]
        (x0, x1), (y0, y1) = _range(steps), _range(values)

        def place(step: float, value: float) -> str:
            x = LEFT + (WIDTH - LEFT - 8) * (step - x0) / (x1 - x0)
            return f"{x:.1f},{TOP + (HEIGHT - TOP - BOTTOM) * (y1 - value) / (y1 - y0):.1f}"

        def drawn(line: list[tuple[float, float]], color: str) -> str:
            points = " ".join(place(*point) for point in line)
            return f'<polyline fill="none" stroke="{color}" stroke-width="2" points="{points}"/>'

        lines = [drawn(line, color) for line, color in zip(self.points.values(), COLORS * len(self.names))]
        legend = [f'<tspan fill="{color}" dx="{8 if i else 0}">{html.escape(name)}</tspan>'
                  for i, (name, color) in enumerate(zip(self.names, COLORS * len(self.names)))]
        ticks = [f'<text x="{LEFT - 6}" y="{y}" text-anchor="end">{value:.3g}</text>'
                 for y, value in ((TOP + 8, y1), (HEIGHT - BOTTOM, y0))]
        ticks += [f'<text x="{x}" y="{HEIGHT - 6}" text-anchor="{anchor}">{value:g}</text>'
                  for x, anchor, value in ((LEFT, "start", x0), (WIDTH - 8, "end", x1))]
        ticks.append(f'<text x="{WIDTH // 2}" y="{HEIGHT - 6}" text-anchor="middle">iteration</text>')
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
                f'font-family="sans-serif" font-size="12" fill="currentColor">'
                f'<text x="{LEFT}" y="14">{"".join(legend)}</text>'
                f'<path d="M{LEFT},{TOP}V{HEIGHT - BOTTOM}H{WIDTH - 8}" fill="none" stroke="gray"/>'
                f'{"".join(ticks)}{"".join(lines)}</svg>')


def _range(values: list[float]) -> tuple[float, float]:
    """Least and largest, apart where all are equal."""
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)
