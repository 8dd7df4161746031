#!/usr/bin/env python3
"""The layering rule: a file of src/ includes only its own stage and the stages that its row names.

The rows follow the path of the data (README.md), so they are also the reading order. A new stage gets a
row here and a sentence in docs/decisions.md. Files of include/dcrl are the public API: they include
nothing but each other, and every stage may include them. The families of environments (env/NAME/) are
private, too: what is in their folders is for them.
"""
import re
import subprocess
import sys
from pathlib import Path

ORDER = "base tensor backend data sample nn algo train render env online rollout report api".split()
LOW = {"base", "tensor", "backend"}  # what every stage stands on
MAY = {stage: LOW | set(ORDER[: ORDER.index(stage)]) for stage in ORDER}
MAY["base"] = set()
MAY["tensor"] = {"base", "backend/backend.h"}  # the engine calls a backend through its table only
MAY["backend"] = {"base", "tensor"}
MAY["render"] = {"base"}
MAY["env"] = {"base", "tensor", "data", "render"}  # simulation knows data, not learning
# A folder of env/ is a family's own business; what asks for a family from outside goes through env/family.h.
FAMILY = re.compile(r"env/([a-z]+)/")
OPEN = {"env/maze/maze.h"}  # maps, which are drawn
FAMILIES = {"soccer": {"walker", "maze"}, "walker": {"maze"}, "point": {"maze"}}  # what a family takes of another
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
PLAIN = re.compile(r'^\s*#\s*include\s+<((?:%s|dcrl)/[^>]+)>' % "|".join(ORDER), re.M)


def allowed(stage, target):
    first = target.split("/")[0]
    return first in (stage, "dcrl") or first in MAY[stage] or target in MAY[stage]


def private(name, target):
    """Whether a file includes what belongs to a family that it is no part of."""
    inside, of = FAMILY.search(name), FAMILY.match(target)
    if not of or target in OPEN:
        return False
    inside = inside.group(1) if inside else ""
    if of.group(1) == "mujoco":  # the engine, for families
        return not inside
    return of.group(1) not in FAMILIES.get(inside, set()) | {inside}


def main():
    root = Path(__file__).resolve().parent.parent
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "src", "include", "cli"], cwd=root, check=True, capture_output=True, text=True
    ).stdout.split("\n")
    broken, seen = [], 0
    for name in filter(re.compile(r"\.(c|h|cu|cuh|def)$").search, listed):
        path = Path(name)
        if not (root / path).exists():
            continue
        stage = path.parts[1] if path.parts[0] == "src" else "dcrl"
        if path.parts[0] == "cli":  # the program may include every stage
            stage = "cli"
        elif stage not in MAY and stage != "dcrl":
            broken.append(f"{name}: '{stage}' is no stage; ORDER in tools/check_layers.py lists them")
            continue
        text = (root / path).read_text()
        seen += 1
        for match in list(INCLUDE.finditer(text)) + list(PLAIN.finditer(text)):
            target = match.group(1)
            line = text.count("\n", 0, match.start()) + 1
            if "/" not in target and (root / path.parent / target).exists():
                continue  # beside the file
            if target.startswith("."):
                broken.append(f"{name}:{line}: includes are written from src/, not {target}")
            elif private(name, target):
                broken.append(f"{name}:{line}: {target} belongs to its family; env/family.h is for all")
            elif "/" in target and stage == "dcrl" and not target.startswith("dcrl/"):
                broken.append(f"{name}:{line}: the public API must not include {target}")
            elif "/" in target and stage not in ("dcrl", "cli") and not allowed(stage, target):
                broken.append(f"{name}:{line}: {stage}/ must not include {target}")
    for line in broken:
        print(line, file=sys.stderr)
    print(f"layers: {seen} files, {len(broken)} broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
