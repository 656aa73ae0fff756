"""Series of metrics, as `promtool test rules` reads them."""
import re

SAMPLE = re.compile(r'^([a-zA-Z_:][\w:]*)(\{.*\})? (\S+)$')


def parse(text):
    """Returns the samples of a page of metrics: the series, as text, and its value."""
    samples = {}
    for line in text.splitlines():
        found = SAMPLE.match(line)
        if found:
            samples[found[1], found[2] or "{}"] = found[3]
    return samples


def number(text):
    """Returns a value as promtool reads it: whole numbers and times since 1970 without a fraction, others with five digits."""
    value = float(text)
    return str(round(value)) if value == int(value) or 1e9 < value < 1e15 else f"{value:.5g}"


def compressed(values):
    """Returns values in promtool's notation: repeated ones as '1x4', missing ones as '_'."""
    parts, index = [], 0
    while index < len(values):
        end = index
        while end + 1 < len(values) and values[end + 1] == values[index]:
            end += 1
        count, value = end - index + 1, values[index]
        if value is None:
            parts.append("_" if count == 1 else f"_x{count}")
        elif count == 1:
            parts.append(value)
        else:
            parts.append(f"{value}+0x{count - 1}")
        index = end + 1
    return " ".join(parts)


class Recording:
    """Samples of several instances at equal intervals."""

    def __init__(self, names, job="trebuchet"):
        self.names, self.job, self.count, self.series = names, job, 0, {}

    def add(self, pages):
        """Adds a scrape: the page of each instance, or None if it did not respond."""
        for instance, text in pages.items():
            self._put(("up", "{}"), instance, "0" if text is None else "1")
            for (name, labels), value in parse(text or "").items():
                base = re.sub(r"_(bucket|sum|count)$", "", name)
                if name in self.names or base in self.names and name.endswith("_bucket") or base in self.names and name.endswith("_count"):
                    self._put((name, labels), instance, number(value))
        self.count += 1

    def _put(self, series, instance, value):
        values = self.series.setdefault((*series, instance), [])
        values += [None] * (self.count - len(values)) + [value]

    def text(self, indent="      "):
        """Returns the series as `input_series`."""
        lines = []
        for (name, labels, instance), values in sorted(self.series.items()):
            values = values + [None] * (self.count - len(values))
            own = f'job="{self.job}", instance="{instance}"'
            others = labels.strip("{}")
            both = "{" + own + (", " + others if others else "") + "}"
            lines.append(f"{indent}- series: '{name}{both}'\n{indent}  values: '{self._with_stale(values)}'\n")
        return "".join(lines)

    @staticmethod
    def _with_stale(values):
        """Marks the first missing value after a present one as stale, as Prometheus does."""
        marked, last = [], None
        for value in values:
            marked.append("stale" if value is None and last is not None else value)
            last = value
        return compressed(marked)
