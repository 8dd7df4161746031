"""Films as Pillow reads them: PNG to the bit, GIF to the bit while it has colours enough, with the right number of
pictures and the right times; noise, which fills every table of the packer; and what a film that fails leaves behind.
"""

import os
import random
import subprocess
import sys

import numpy as np
from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, run_tests  # noqa: E402

TOOL = os.path.join(os.environ["BUILD"], "tests", "tool_film")


def generator():
    return np.random.default_rng(random.randrange(1 << 62))


def film(scratch, name, pictures, rate=10.0, env=None):
    """Write pictures (count, height, width, 3) as a film; returns the finished process."""
    pictures.astype(np.uint8).tofile(scratch.at("raw"))
    height, width = pictures.shape[1:3]
    words = [TOOL, str(width), str(height), str(rate), scratch.at("raw"), scratch.at(name)]
    return subprocess.run(words, capture_output=True, text=True, env=env)


def made(*given, **more):
    done = film(*given, **more)
    assert done.returncode == 0, done.stderr


def gradient(height, width):
    y, x = np.mgrid[:height, :width]
    return np.stack([x * 255 // max(width - 1, 1), y * 255 // max(height - 1, 1), (x + y) % 256], -1).astype(np.uint8)


def frames_of(path):
    with Image.open(path) as image:
        times, frames = [], []
        for k in range(image.n_frames):
            image.seek(k)
            times.append(image.info["duration"])
            frames.append(np.asarray(image.convert("RGB")))
    return np.stack(frames), times


def test_png():
    rng = generator()
    with Scratch("film") as scratch:
        for height, width in (1, 1), (1, 300), (300, 1), (7, 5), (120, 200):
            for picture in rng.integers(0, 256, (height, width, 3)), gradient(height, width), np.zeros((height, width, 3)):
                made(scratch, "one.png", picture[None])
                with Image.open(scratch.at("one.png")) as image:
                    image.verify()
                with Image.open(scratch.at("one.png")) as image:
                    assert image.mode == "RGB" and np.array_equal(np.asarray(image), picture), (height, width)
        plain = gradient(200, 200).nbytes
        made(scratch, "one.png", gradient(200, 200)[None])
        assert os.path.getsize(scratch.at("one.png")) < plain / 20  # filters are of use


def test_folder():
    pictures = generator().integers(0, 256, (12, 9, 8, 3))
    with Scratch("film") as scratch:
        made(scratch, "frames", pictures)
        names = sorted(os.listdir(scratch.at("frames")))
        assert names == [f"frame-{k:05d}.png" for k in range(12)], names
        for name, picture in zip(names, pictures):
            assert np.array_equal(np.asarray(Image.open(scratch.at("frames", name))), picture)
        again = film(scratch, "frames", pictures)
        assert again.returncode == 1 and "is there already" in again.stderr and again.stderr.count("\n") == 1


def few_colours(rng, count, height, width, colours):
    """Pictures of colours that lie in bins of their own, half of them beside each other."""
    bins = rng.choice(64**3, colours, replace=False)
    near = rng.choice(8**3, colours // 2, replace=False)
    bins[: colours // 2] = near // 64 * 4096 + near // 8 % 8 * 64 + near % 8
    bins = rng.permutation(np.unique(bins))
    colours = len(bins)
    table = np.stack([bins // 4096, bins // 64 % 64, bins % 64], -1) * 4 + rng.integers(0, 4, (colours, 3))
    pictures = table[rng.integers(0, colours, (count, height, width))]
    for k in range(1, count):  # most of a picture stays as it was
        keep = rng.random((height, width)) < 0.7
        pictures[k][keep] = pictures[k - 1][keep]
    return pictures


def test_gif_exact():
    rng = generator()
    with Scratch("film") as scratch:
        for colours in 1, 2, 17, 255:
            for count, height, width in (1, 1, 1), (3, 1, 70), (9, 33, 41), (2, 150, 220):
                pictures = few_colours(rng, count, height, width, colours)
                made(scratch, "a.gif", pictures)
                frames, _ = frames_of(scratch.at("a.gif"))
                assert np.array_equal(frames, pictures), (colours, count, height, width)


def test_gif_still():
    """Pictures that do not change take their time, too."""
    picture = gradient(40, 50)
    with Scratch("film") as scratch:
        made(scratch, "a.gif", np.stack([picture] * 5), rate=40)
        with open(scratch.at("a.gif"), "rb") as file:
            blocks = file.read().count(b"\x21\xf9\x04")
        assert blocks == 5
        made(scratch, "a.gif", np.stack([picture, picture + 1, picture, picture + 1]), rate=40)
        frames, times = frames_of(scratch.at("a.gif"))
        assert len(frames) == 4 and times == [30, 20, 30, 20], times  # 2.5 hundredths on average


def test_gif_many_colours():
    """Noise has every colour there is: nothing is exact, but nothing is far off, and gradients look right."""
    rng = generator()
    with Scratch("film") as scratch:
        made(scratch, "a.gif", rng.integers(0, 256, (3, 200, 200, 3)))
        assert len(frames_of(scratch.at("a.gif"))[0]) == 3
        for noise in 0, 3:
            pictures = np.stack([np.clip(gradient(100, 120) + rng.integers(-noise, noise + 1, (100, 120, 3)), 0, 255)] * 2)
            made(scratch, "a.gif", pictures)
            frames, _ = frames_of(scratch.at("a.gif"))
            assert np.abs(frames.astype(int) - pictures).mean() < 12


def test_same_bytes():
    pictures = generator().integers(0, 256, (4, 30, 30, 3))
    with Scratch("film") as scratch:
        for name in "a.gif", "a.png":
            some = pictures[:1] if name == "a.png" else pictures
            made(scratch, name, some)
            made(scratch, "second" + name[1:], some)
            first, second = (open(scratch.at(n), "rb").read() for n in (name, "second" + name[1:]))
            assert first == second


FAKE = """#!/bin/sh
for out; do :; done
out=${out#file:}
case $MODE in
good) cat >"$out" ;;
early) exit 3 ;;
late) cat >/dev/null; echo half >"$out"; exit 1 ;;
esac
"""


def test_mp4():
    """The raw pictures reach ffmpeg whole; one that fails, early or late, leaves one clear line and no file."""
    pictures = generator().integers(0, 256, (20, 120, 130, 3))
    with Scratch("film") as scratch:
        os.mkdir(scratch.at("bin"))
        with open(scratch.at("bin", "ffmpeg"), "w") as file:
            file.write(FAKE)
        os.chmod(scratch.at("bin", "ffmpeg"), 0o755)
        env = {**os.environ, "PATH": scratch.at("bin") + ":" + os.environ["PATH"]}
        with open(scratch.at("a.mp4.part"), "w") as file:
            file.write("a user's")
        made(scratch, "a.mp4", pictures, env={**env, "MODE": "good"})
        with open(scratch.at("a.mp4.part")) as file:
            assert file.read() == "a user's"
        assert np.array_equal(np.fromfile(scratch.at("a.mp4"), np.uint8), pictures.ravel())
        for mode in "early", "late":
            done = film(scratch, "b.mp4", pictures, env={**env, "MODE": mode})
            assert done.returncode == 1 and "ffmpeg gave up" in done.stderr and done.stderr.count("\n") == 1, done
        os.mkdir(scratch.at("none"))
        done = film(scratch, "b.mp4", pictures, env={**os.environ, "PATH": scratch.at("none")})
        assert done.returncode == 1 and "install the package ffmpeg" in done.stderr, done
        assert not [name for name in os.listdir(scratch.path) if name.startswith("b.mp4")]


def test_refused():
    picture = gradient(4, 4)[None]
    with Scratch("film") as scratch:
        done = film(scratch, "a.gif", picture, rate=60)
        assert done.returncode == 1 and "at most 50" in done.stderr, done
        done = film(scratch, os.path.join("nope", "a.gif"), picture)
        assert done.returncode == 1 and "nope/a.gif" in done.stderr, done
        assert sorted(os.listdir(scratch.path)) == ["raw"]


if __name__ == "__main__":
    run_tests(globals())
