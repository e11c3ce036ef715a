"""A stand-in for grader/launcher.py where no GPU is: `python launcher_example.py MODE FD`.

It multiplies with NumPy whatever code it is sent. MODE is what it does besides: "fair",
"impossible" (its clock is a thousand times too fast), "slow", "unchecked" (the last timed output is
wrong), "fault", "refused", "silent", "dies", "absent" (no GPU answers).
"""

import dataclasses
import os
import sys
import time

import numpy as np

from tiled_matmul.grader import wire
from tiled_matmul.grader.spec import Case
from tiled_matmul.machine import device

MODE, FD = sys.argv[1:3]
MOST = 256 << 20
PEAK = dataclasses.asdict(device.PEAKS["H200"])
ANSWER_MS = {"impossible": 1e-6, "slow": 1000.0}


def hello(header, blobs):
    if MODE == "absent":
        return {"error": {"type": "GpuError", "message": "nobody is there"}}, []
    return {"gpu": "a stand-in"}, []


def run(header, blobs):
    if MODE == "dies":
        os._exit(3)
    if MODE == "silent":
        time.sleep(600)
    names = {"fault": "CUDA_ERROR_ILLEGAL_ADDRESS", "refused": "CUDA_ERROR_INVALID_VALUE"}
    if MODE in names:
        said = {"type": "GpuError", "message": "the driver says so", "name": names[MODE]}
        return {"error": said}, []
    shapes = header["shapes"]
    a, b = (
        np.frombuffer(x, header["dtype"]).reshape(s)
        for x, s in zip(blobs[1:3], shapes[:2], strict=True)
    )
    return {"launched": True}, [_product(a, b), *blobs[1:3]]


def timed(header, blobs):
    case = Case(**header["case"])
    outputs = [_product(*case.inputs(header["seed"] + number)) for number in range(3)]
    if MODE == "unchecked":
        outputs[-1] = bytes(len(outputs[-1]))
    samples = {"answer": [ANSWER_MS.get(MODE, 0.5)] * 3, "baseline": [0.4] * 3}
    return {**samples, "peak": PEAK}, outputs


def _product(a, b):
    return (a.astype(np.float32) @ b.astype(np.float32)).astype(a.dtype).tobytes()


SERVICES = {"hello": hello, "run": run, "time": timed}

out = os.fdopen(int(FD), "wb", buffering=0)
wire.read_from(sys.stdin.buffer.read, MOST)
reply = {"ready": True}, []
while True:
    wire.send(out, *reply)
    got = wire.read_from(sys.stdin.buffer.read, MOST)
    if got is None:
        break
    reply = SERVICES[got[0]["do"]](*got)
