"""dcrl bench env --threads N,...: a row for each number, in that order, and the last one's figures where one number's stood."""

import json
import os
import subprocess

DCRL = os.environ["DCRL"]


def bench(*words):
    return subprocess.run([DCRL, "bench", "env", "pointmaze-medium", "--seconds", "0.05", *words], capture_output=True, text=True)


def main():
    ran = bench("--threads", "2,1", "--json")
    if "no MuJoCo" in ran.stderr:
        return
    env = json.loads(ran.stdout)["envs"][0]
    assert [c["threads"] for c in env["crowds"]] == [2, 1]
    assert all(c[key] > 0 for c in env["crowds"] for key in ("steps_per_second", "scaling", "cpu_scaling", "clock"))
    assert env["all_threads_steps_per_second"] == env["crowds"][-1]["steps_per_second"]
    rows = bench("--threads", "1,2").stdout.splitlines()[2:]
    assert [row.split()[0] for row in rows] == ["1", "2"], rows
    assert len(bench("--threads", "1").stdout.splitlines()) == 1
    assert bench("--threads", "1,x").returncode == 2


if __name__ == "__main__":
    main()
