"""What a training step costs on GPUs that were not at hand, and on data that fit nowhere: a model, and its tables for docs/performance.md.

    DCRL=build/dcrl python3 bench/costs.py

What a step computes comes from the program (`dcrl bench train --part count`), what it took from the measurements named below. Three numbers
are fitted to those of one H200 in bf16, by least squares of relative errors:

    microseconds = wait * chain + launch * products + work * GFLOP / GPUs + all-reduce

chain: products that wait for each other, the longest way forward and back, with the small ops between them. products: all of the graph's,
each of which is some launches. GFLOP: with every row of the batch. Tables mark what is no measurement: everything of more than one GPU
stands on data sheets (ASSUMED), since no such machine was at hand.
"""

import json
import os
import subprocess

DCRL = os.environ.get("DCRL", "build/dcrl")

# Steps per second on one H200 in bf16, rows drawn there, in one run: docs/performance.md. (work, method, runs in one process, rate in sum)
MEASURED = [("lock", "dcrl", 1, 12698), ("lock", "dcrl", 8, 31302), ("standard", "dcrl", 1, 4156), ("long", "dcrl", 1, 1617)] + [
    ("standard", method, 1, rate)
    for method, rate in dict(bc=16869, fbc=12983, gcivl=6303, hbc=7633, hiql=3103, iql=5148, mc=5240, sacbc=4315, sharsa=4329, tdp=3131,
                             trl=5136, coe=2445).items()
] + [("standard", "td-n", 1, 5235)]  # fmt: skip
# Of the same run, with networks or losses that go layer by layer or are no products: shown, not fitted.
APART = [("standard", "crl", 1, 2186), ("standard", "qrl", 1, 2286), ("standard", "por", 1, 2906), ("standard", "tmd", 1, 1248)]
# Three processes of standard under MPS, in sum. Each waits as one alone does, and they share what is computed.
MPS, MPS_RUNS = 4835, 3
# Microseconds of one thread's processor time (Zen 5) to draw and gather a step's rows, their bytes, and numbers of an observation:
# `dcrl bench train --part feed --threads 1`.
FED = {"lock": (35, 143360, 11), "standard": (529, 1028096, 29), "long": (707, 2441216, 69)}
# Random reads per second of the virtual disk that docs/lab/data.md measured, with the next step's rows asked for ahead: 6,144 in 0.2 s.
READS = 6144 / 0.2

# ASSUMED: bytes per second of an all-reduce within a machine of eight GPUs and between such machines (two thirds of NVLink's 450 GB/s and of
# 400 Gb/s a GPU), seconds that it takes at least there, cores that feed each GPU.
INSIDE, BETWEEN, START_INSIDE, START_BETWEEN, CORES = 300e9, 33e9, 20e-6, 50e-6, 8
GPUS, THREADS = (1, 2, 4, 8, 16, 32, 64), (1, 2, 4, 8, 16)


def count(work, method):
    words = [DCRL, "bench", "train", "--work", work, "--agent", method, "--part", "count"]
    words += ["--set", "rep="] if method != "dcrl" else []  # the standard work of other methods is without an oracle, as in the measurements
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def terms(row):
    """Chain, products and GFLOP of all runs; runs of one process are launched side by side."""
    work, method, runs, _ = row
    c = count(work, method)
    return [c["chain"], c["products"], runs * c["flops"] / 1e9]


def microseconds(row):
    return 1e6 * row[2] / row[3]


def solve(a, b):
    """Gauss for the normal equations."""
    n = len(b)
    rows = [list(a[i]) + [b[i]] for i in range(n)]
    for i in range(n):
        for j in range(n):
            if j != i:
                factor = rows[j][i] / rows[i][i]
                rows[j] = [x - factor * y for x, y in zip(rows[j], rows[i])]
    return [rows[i][n] / rows[i][i] for i in range(n)]


def fit(rows):
    """(wait, launch, work) with the least sum of squared relative errors."""
    scaled = [[x / microseconds(row) for x in terms(row)] for row in rows]
    a = [[sum(s[i] * s[j] for s in scaled) for j in range(3)] for i in range(3)]
    return solve(a, [sum(s[i] for s in scaled) for i in range(3)])


def predict(found, values, gpus=1):
    chain, products, gflop = values
    return found[0] * chain + found[1] * products + found[2] * gflop / gpus


def reduce_seconds(weights, gpus):
    """A ring of 4-byte gradients, all in one go after the backward pass."""
    if gpus == 1:
        return 0
    speed, start = (INSIDE, START_INSIDE) if gpus <= 8 else (BETWEEN, START_BETWEEN)
    return start + 8 * weights * (gpus - 1) / gpus / speed


def table(head, rows):
    widths = "|" + "---|" * len(head)
    return "\n".join(["| " + " | ".join(head) + " |", widths] + ["| " + " | ".join(row) + " |" for row in rows])


def comparison(found, row, name, note=""):
    model = predict(found, terms(row))
    return [name, f"{row[3]:,}", f"{1e6 * row[2] / model:,.0f}", f"{100 * (microseconds(row) / model - 1):+.0f} %{note}"]


def name_of(row):
    work, method, runs, _ = row
    many = {8: ", eight runs"}.get(runs, "")
    return work + many if method == "dcrl" else f"`{method}`"


def fit_table(found):
    rows = [comparison(found, row, name_of(row)) for row in MEASURED]
    rows += [comparison(found, row, name_of(row), ", not fitted") for row in APART]
    standard = terms(("standard", "dcrl", 1, 1))
    shared = ("standard", "dcrl", MPS_RUNS, MPS)
    model = predict(found, [standard[0], standard[1], MPS_RUNS * standard[2]])
    rows.append(["standard, three processes", f"{MPS:,}", f"{1e6 * MPS_RUNS / model:,.0f}", f"{100 * (microseconds(shared) / model - 1):+.0f} %, not fitted"])
    return table(["measured on one H200, bf16", "steps/s", "model", "time over the model's"], rows)


def host_table(found):
    """feed=host on one GPU: rows are made while the GPU computes, so the slower of both counts."""
    rows = []
    for work, (spent, _, _) in FED.items():
        gpu = predict(found, terms((work, "dcrl", 1, 1)))
        rows.append([work, f"{spent:,}"] + [f"{1e6 / max(gpu, spent / threads):,.0f}" for threads in THREADS])
    return table(["feed=host on one GPU", "us of a thread for a step's rows"] + [f"with {t}" for t in THREADS], rows)


def gpu_table(found):
    rows = []
    for work in ("standard", "long"):
        c, values = count(work, "dcrl"), terms((work, "dcrl", 1, 1))
        for gpus in GPUS:
            same = predict(found, values, gpus) + 1e6 * reduce_seconds(c["weights"], gpus)
            more = predict(found, values) + 1e6 * reduce_seconds(c["weights"], gpus)
            host, host_more = FED[work][0] / CORES, gpus * FED[work][0] / CORES
            each = [f"{1e6 / max(same, host):,.0f}", f"{1e6 * reduce_seconds(c['weights'], gpus):,.0f}", f"{host:,.0f}"]
            each += [f"{gpus * 1e6 / max(more, host_more):,.0f}", f"{gpus * 1e6 / more:,.0f}"]
            rows.append([work, str(gpus)] + each)
    head = ["work", "GPUs", "steps/s, batch of 1024 in all", "all-reduce, us", "host's rows, us"]
    return table(head + ["batches of 1024 a second, one a GPU", "the same, each rank drawing its own"], rows)


def data_table(found):
    """A billion rows: how many reads miss memory, and what that leaves."""
    rows = []
    for name, work, width in (("antmaze", "standard", 29 + 8), ("puzzle-4x5", "long", 99 + 5), ("humanoidmaze", "long", 69 + 21)):
        total = 4e9 * width
        spent, fed, numbers = FED[work]
        drawn = fed / (4 * numbers)  # nearly all of it is observations
        gpu = min(1e6 / predict(found, terms((work, "dcrl", 1, 1))), 1e6 * CORES / spent)
        for memory in (128, 512, 2048):
            missed = drawn * max(0, 1 - memory * 2**30 * 0.9 / total)
            steps = min(gpu, READS / missed) if missed else gpu
            rows.append([name, f"{total / 1e9:,.0f}", f"{memory:,}", f"{missed:,.0f}", f"{missed * gpu / 1e6:,.1f}", f"{steps:,.0f}"])
    head = ["rows like", "GB in float32", "memory, GiB", "reads a step that miss it", "million reads/s that the GPU could use", "steps/s on the disk measured"]
    return table(head, rows)


def main():
    found = fit(MEASURED)
    print(f"Fitted: {found[0]:.1f} us for each product of the chain, {found[1]:.1f} us for each product, {1e3 / found[2]:,.0f} TFLOP/s.\n")
    print(fit_table(found), host_table(found), gpu_table(found), data_table(found), sep="\n\n")


if __name__ == "__main__":
    main()
