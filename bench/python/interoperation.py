"""Arrays of CuPy, PyTorch and JAX on a real GPU: answers, copies, order of streams and cost of a call, as JSON.

Run with Femtile and at least one of the packages installed: python bench/python/interoperation.py > interoperation.json
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
import time

import numpy as np
import scipy.sparse as sp

import femtile


class Kit:
    """What differs between packages: arrays to and from the host, their address, their stream."""

    def __init__(self, name):
        self.name = name
        self.package = importlib.import_module("jax.numpy" if name == "jax" else name)
        if name == "jax":
            importlib.import_module("jax").config.update("jax_enable_x64", True)
        elif name == "torch":
            self.package.zeros(1, device="cuda")

    def put(self, values):
        if self.name == "torch":
            return self.package.from_numpy(np.ascontiguousarray(values)).cuda()
        return self.package.asarray(values)

    def get(self, array):
        if self.name == "cupy":
            return self.package.asnumpy(array)
        return array.cpu().numpy() if self.name == "torch" else np.asarray(array)

    def address(self, array):
        if self.name == "torch":
            return array.data_ptr()
        return array.data.ptr if self.name == "cupy" else array.unsafe_buffer_pointer()

    def synchronize(self):
        if self.name == "cupy":
            self.package.cuda.Device().synchronize()
        elif self.name == "torch":
            self.package.cuda.synchronize()

    def side_stream(self):
        if self.name == "cupy":
            return self.package.cuda.Stream(non_blocking=True)
        return self.package.cuda.stream(self.package.cuda.Stream())


def systems(rng, dtype, shape=(300, 129, 7)):
    a, c, d = (rng.uniform(-1, 1, shape).astype(dtype) for _ in range(3))
    return a, (4 + a).astype(dtype), c, d


def close(found, expected, dtype):
    scale = np.abs(expected).max()
    return bool(np.abs(found - expected).max() <= (1e-4 if dtype == np.float32 else 1e-11) * scale)


def check_tridiagonal(kit, rng):
    found = {}
    for dtype in (np.float32, np.float64):
        host = systems(rng, dtype)
        for axis in (0, 1, 2):
            for order in "CF":
                ordered = [np.array(x, order=order) for x in host]
                expected = femtile.solve_tridiagonal(*ordered, axis=axis)
                given = [kit.put(x) for x in ordered] if kit.name == "cupy" or order == "C" else None
                if given is None:
                    continue
                u = femtile.solve_tridiagonal(*given, axis=axis)
                key = f"{np.dtype(dtype).name} axis {axis} order {order}"
                found[key] = close(kit.get(u), expected, dtype) and type(u) is type(given[3])
        shared = [x[0, :, 0].copy() for x in host[:3]]
        expected = femtile.solve_tridiagonal(*shared, host[3], axis=1)
        u = femtile.solve_tridiagonal(*map(kit.put, shared), kit.put(host[3]), axis=1)
        found[f"{np.dtype(dtype).name} shared bands"] = close(kit.get(u), expected, dtype)
        for settings in ({"periodic": True}, {"pivoting": True}):
            expected = femtile.solve_tridiagonal(*host, axis=1, **settings)
            u = femtile.solve_tridiagonal(*map(kit.put, host), axis=1, **settings)
            found[f"{np.dtype(dtype).name} {settings}"] = close(kit.get(u), expected, dtype)
    return found


def check_copies(kit, rng):
    host = systems(rng, np.float64)
    given = [kit.put(x) for x in host]
    expected = femtile.solve_tridiagonal(*host, axis=1)
    if kit.name == "jax":
        return {"inputs are kept": all(np.array_equal(kit.get(x), y) for x, y in zip(given, host))}
    u = femtile.solve_tridiagonal(*given, axis=1)
    out = kit.put(np.full_like(host[3], np.nan))
    place, right = kit.address(out), kit.address(given[3])
    back = femtile.solve_tridiagonal(*given, axis=1, out=out)
    kept = all(np.array_equal(kit.get(x), y) for x, y in zip(given, host))
    in_place = femtile.solve_tridiagonal(*given, axis=1, out=given[3])
    return {
        "inputs are kept": kept,
        "result is an array of its own": kit.address(u) not in [kit.address(x) for x in given],
        "out is written where it lies": back is out and kit.address(out) == place and close(kit.get(out), expected, np.float64),
        "d is overwritten where it lies": in_place is given[3]
        and kit.address(given[3]) == right
        and close(kit.get(given[3]), expected, np.float64),
    }


def check_streams(kit, rng, rounds):
    """Make the right sides by slow work in a side stream just before the solve, use the solution just after it."""
    if kit.name == "jax":
        return {}
    host = systems(rng, np.float64, (2000, 129, 7))
    expected = femtile.solve_tridiagonal(*host, axis=1)
    n_wrong = 0
    for _ in range(rounds):
        given = [kit.put(x) for x in host]
        noise = kit.put(rng.standard_normal((2048, 2048)))
        kit.synchronize()
        with kit.side_stream():
            work = noise
            for _ in range(20):
                work = work @ noise
                work = work / abs(work).max()
            d = given[3] + 0 * work[0, 0]
            u = femtile.solve_tridiagonal(*given[:3], d, axis=1)
            d *= np.nan
            twice = 2 * u
            del u
            work = kit.put(np.full(host[3].shape, np.nan))
            n_wrong += not close(kit.get(twice), 2 * expected, np.float64)
    return {"solves in a side stream that were wrong": n_wrong, "rounds": rounds}


def check_others(kit, rng):
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(120, 120))
    A = sp.csr_array(sp.kron(line, sp.eye_array(120)) + sp.kron(sp.eye_array(120), line))
    x = rng.standard_normal(A.shape[0])
    found = {}
    for dtype in (np.float32, np.float64):
        matrix = femtile.EllWarp(A.astype(dtype), device="cuda")
        y = matrix @ kit.put(x.astype(dtype))
        found[f"EllWarp {np.dtype(dtype).name}"] = close(kit.get(y), A @ x, dtype)
        if kit.name != "jax":
            out = kit.put(np.full(A.shape[0], np.nan, dtype))
            found[f"EllWarp out {np.dtype(dtype).name}"] = matrix.apply(kit.put(x.astype(dtype)), out) is out and close(
                kit.get(out), A @ x, dtype
            )
    solver = femtile.amg(A, device="cuda")
    b = kit.put(x)
    u, outcome = solver.solve(b, tol=1e-10, return_outcome=True)
    found["amg"] = bool(outcome.has_converged and np.linalg.norm(x - A @ kit.get(u)) <= 1e-8 * np.linalg.norm(x))
    again, outcome = solver.solve(b, tol=1e-10, x0=u, return_outcome=True)
    found["amg from x0"] = outcome.iterations <= 1 and close(kit.get(again), kit.get(u), np.float64)
    return found


def check_refusals(kit, rng):
    host = systems(rng, np.float64, (4, 5, 8))
    a, b, c, d = map(kit.put, host)
    part = kit.put(np.zeros((4, 5, 10)))[:, :, 1:9]
    calls = {
        "a": lambda: femtile.solve_tridiagonal(host[0], b, c, d),
        "b": lambda: femtile.solve_tridiagonal(a, kit.put(host[1].astype(np.float32)), c, d),
        "x": lambda: femtile.EllWarp(sp.eye_array(8).tocsr(), device="cuda") @ d,
    }
    if kit.name != "jax":
        calls["d"] = lambda: femtile.solve_tridiagonal(a, b, c, part)
        calls["out"] = lambda: femtile.solve_tridiagonal(a, b, c, d, out=a)
    else:
        calls["out"] = lambda: femtile.solve_tridiagonal(a, b, c, d, out=kit.put(host[3]))
    found = {}
    for argument, call in calls.items():
        try:
            call()
            found[argument] = False
        except femtile.Error as error:
            found[argument] = error.argument == argument
    return found


def microseconds(kit, call, n):
    call()
    kit.synchronize()
    times = []
    for _ in range(n):
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    kit.synchronize()
    return round(statistics.median(times) * 1e6, 1)


def measure(kit, rng, n):
    small = [kit.put(x) for x in systems(rng, np.float64, (4, 8))]
    large = [kit.put(x) for x in systems(rng, np.float64, (65536, 256))]
    found = {
        "solve_tridiagonal 4 × 8, us": microseconds(kit, lambda: femtile.solve_tridiagonal(*small), n),
        "solve_tridiagonal 65536 × 256, us": microseconds(kit, lambda: femtile.solve_tridiagonal(*large), 20),
    }
    if kit.name != "jax":
        out = kit.put(np.zeros((65536, 256)))
        found["solve_tridiagonal 65536 × 256 into out, us"] = microseconds(
            kit, lambda: femtile.solve_tridiagonal(*large, out=out), 20
        )
        matrix = femtile.EllWarp(sp.eye_array(64).tocsr(), device="cuda")
        x, y = kit.put(np.ones(64)), kit.put(np.zeros(64))
        found["EllWarp.apply of 64 rows into out, us"] = microseconds(kit, lambda: matrix.apply(x, y), n)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", nargs="*", default=["cupy", "torch", "jax"])
    parser.add_argument("--rounds", type=int, default=10, help="rounds of the test of streams")
    parser.add_argument("--calls", type=int, default=500, help="calls of each timing")
    settings = parser.parse_args()
    report, is_right = {"femtile": femtile.__version__, "python": sys.version.split()[0]}, True
    for name in settings.packages:
        try:
            kit = Kit(name)
        except ImportError as error:
            report[name] = f"skipped: {error}"
            continue
        rng = np.random.default_rng(1)
        checks = {
            "tridiagonal": check_tridiagonal(kit, rng),
            "copies": check_copies(kit, rng),
            "others": check_others(kit, rng),
            "refusals": check_refusals(kit, rng),
        }
        streams = check_streams(kit, rng, settings.rounds)
        is_right &= all(all(found.values()) for found in checks.values()) and not streams.get(
            "solves in a side stream that were wrong"
        )
        report[name] = {**checks, "streams": streams, "times": measure(kit, rng, settings.calls)}
    report["all right"] = is_right
    print(json.dumps(report, indent=2))
    return 0 if is_right else 1


if __name__ == "__main__":
    raise SystemExit(main())
