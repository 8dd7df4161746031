"""The figures of test_plot.c, read by a real XML parser: well-formed, nothing outside the picture,
nothing active, and the text that a reader should see."""
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

SVG = "{http://www.w3.org/2000/svg}"
ALLOWED = {SVG + tag for tag in "svg g rect line polyline path circle text tspan title style".split()}


def numbers(element):
    """All coordinates of an element, with its panel's shift left out."""
    for name in ("x", "y", "x1", "y1", "x2", "y2", "cx", "cy"):
        if name in element.attrib:
            yield float(element.get(name))
    for pair in element.get("points", "").split():
        yield from map(float, pair.split(","))
    path = element.get("d", "").strip("MZ")
    for pair in path.split("L") if path else []:
        yield from map(float, pair.split(","))


def check(path):
    root = ET.parse(path).getroot()
    width, height = (float(root.get(side)) for side in ("width", "height"))
    for element in root.iter():
        assert element.tag in ALLOWED, (path, element.tag)
        assert not any(name.startswith("on") or "href" in name for name in element.attrib), path
        for value in numbers(element):
            assert -10 <= value <= max(width, height), (path, element.tag, element.attrib)
    return "\n".join(root.itertext())


def main():
    program = Path(os.environ["BUILD"]) / "tests" / "test_plot"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, folder], check=True)
        texts = {path.stem: check(path) for path in sorted(Path(folder).glob("*.svg"))}
    assert len(texts) == 8, texts.keys()
    assert "no data" in texts["empty"]
    assert "recursion off" in texts["lock"] and "A(H)" in texts["lock"]
    assert "<script>alert('x')</script> & \"quoted\" ]]" in texts["hostile"]
    assert "</text><text>" in texts["hostile"]
    print(f"{len(texts)} figures are well-formed")


if __name__ == "__main__":
    sys.exit(main())
