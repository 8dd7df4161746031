"""A host program with a comma locale gets the same files, models and messages as one without.

The locale is made here (LC_NUMERIC of glibc, with ',' for '.'), since a machine may have none like that.
"""

import ctypes
import locale
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from drive import Scratch, digest, run_tests, sanitized  # noqa: E402

COMMA = bytes.fromhex("1411032006000000200000002200000024000000280000002c00000030000000"
                      "2c002e00030300002c0000002e000000414e53495f58332e342d3139363800")


def host(folder):
    """What a host program does with the library; its words go to standard output."""
    lib = ctypes.CDLL(os.path.join(os.environ["BUILD"], "libdcrl.so"))
    lib.dcrl_message.restype = ctypes.c_char_p
    run, env = ctypes.c_void_p(), ctypes.c_void_p()
    assert lib.dcrl_run_new(ctypes.byref(run), None, b"dcrl") == 0
    for key, value in (("env", "lock-32"), ("hidden", "8,8"), ("batch", "16"), ("steps", "40"), ("log_every", "10"), ("threads", "1"),
                       ("lr", "0.0015")):
        assert lib.dcrl_run_set(run, key.encode(), value.encode()) == 0, lib.dcrl_message()
    assert lib.dcrl_run_set(run, b"gamma", b"1.5") != 0
    print(lib.dcrl_message().decode())
    assert lib.dcrl_run_start(run, None, folder.encode()) == 0, lib.dcrl_message()
    assert lib.dcrl_run_train(run, None, None) == 0, lib.dcrl_message()
    lib.dcrl_run_free(run)
    status = lib.dcrl_env_open(ctypes.byref(env), b"cube-single-v0", ctypes.c_uint64(1))
    if status == 7:  # a build without MuJoCo
        return
    assert status == 0, lib.dcrl_message()
    obs, goal = (ctypes.c_float * 64)(), (ctypes.c_float * 64)()
    assert lib.dcrl_env_reset(env, 1, obs, goal) == 0, lib.dcrl_message()
    print(bytes(obs).hex(), bytes(goal).hex())
    lib.dcrl_env_close(env)


def call_host(scratch, name, comma):
    words = [sys.executable, os.path.abspath(__file__), "host", scratch.at(name), comma]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "LOCPATH": scratch.at("locales")})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_comma():
    with Scratch("locale") as scratch:
        os.makedirs(scratch.at("locales", "comma"))
        with open(scratch.at("locales", "comma", "LC_NUMERIC"), "wb") as file:
            file.write(COMMA)
        plain, comma = call_host(scratch, "plain", ""), call_host(scratch, "comma", "comma")
        assert plain == comma, (plain, comma)
        for name in os.listdir(scratch.at("plain")):
            if name != "timing.csv":
                assert digest(scratch.at("plain", name)) == digest(scratch.at("comma", name)), name
        with open(scratch.at("comma", "timing.csv")) as file:
            assert all(line.count(",") == 3 for line in file)


if __name__ == "__main__":
    if sys.argv[1:2] == ["host"]:
        if sys.argv[3]:
            locale.setlocale(locale.LC_NUMERIC, sys.argv[3])
            assert f"{1.5:n}" == "1,5"
        host(sys.argv[2])
    elif sanitized():
        print("skipped: a sanitizer's library cannot be loaded into Python")
    else:
        run_tests(globals())
