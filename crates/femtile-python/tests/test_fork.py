"""Workers that multiprocessing forks after calls in the parent, which starts threads there."""

import multiprocessing

import numpy as np
import pytest
from conftest import laplacian

import femtile

FORK = multiprocessing.get_context("fork")

#: A worker that has not answered after so many seconds hangs.
LONGEST = 60

MATRIX = laplacian(50)
SOLVERS = {}


def tridiagonal(threads):
    band = np.ones(40)
    return femtile.solve_tridiagonal(-band, 3 * band, -band, np.ones((100, 40)), threads=threads)


def product(threads):
    return femtile.EllWarp(MATRIX, threads=threads) @ np.ones(2500)


def multigrid(threads):
    """The solver of the parent, which its children have as well."""
    solver = SOLVERS.setdefault(threads, femtile.amg(MATRIX, threads=threads))
    return solver.solve(np.ones(2500))


def krylov(threads):
    return femtile.cg(MATRIX, np.ones(2500), M=femtile.amg(MATRIX), threads=threads)[0]


def mesh(_):
    checked = femtile.check(femtile.mesh.box([6, 6, 6])).mesh
    return femtile.Mesh(checked.points, checked.cells, checked.kind).points


def poisson(threads):
    problem = femtile.Poisson(femtile.mesh.square([20, 20]), source=1.0).dirichlet("all", 0.0)
    operator = problem.operator(threads=threads)
    return np.r_[problem.solve(threads=threads).fields["u"], operator @ operator.rhs]


def in_time(threads):
    case = {
        "mesh": {"generate": {"kind": "square", "cells": [8, 8]}},
        "equation": {"kind": "diffusion", "source": 1, "initial": "x*y"},
        "boundary": [{"where": "all", "dirichlet": 0}],
        "time": {"method": "bdf2", "end": 0.2, "steps": 4, "frames": {"every": 0.05}},
        "solver": {"threads": threads},
    }
    with femtile.frames(case) as run:
        return np.array([solution.fields["u"] for _, solution in run])


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("threads", [0, 1, 3])
@pytest.mark.parametrize("work", [tridiagonal, product, multigrid, krylov, mesh, poisson, in_time])
def test_forked_workers_return_what_the_parent_does(work, threads):
    expected = work(threads)
    with FORK.Pool(2) as pool:
        found = pool.map_async(work, [threads] * 3).get(timeout=LONGEST)
    assert all((one == expected).all() for one in found)
