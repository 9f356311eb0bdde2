"""Cases, problems on meshes and runs in time."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import femtile

SQUARE = {"generate": {"kind": "square", "cells": [12, 9]}}
HEAT = {
    "mesh": SQUARE,
    "equation": {"kind": "diffusion", "source": 1},
    "boundary": [{"where": "all", "dirichlet": 0}],
    "time": {"method": "bdf2", "end": 0.2, "steps": 20, "frames": {"every": 0.05}},
}


def linear(mesh):
    """A case whose solution is 1 + x."""
    ends = [{"where": "xmin", "dirichlet": 1}, {"where": "xmax", "dirichlet": 2}]
    return {"mesh": mesh, "boundary": ends}


def test_a_linear_function_is_reproduced_and_no_file_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    solution = femtile.solve(linear(SQUARE))
    assert solution.has_converged and np.allclose(solution.fields["u"], 1 + solution.mesh.points[:, 0])
    assert solution.report["mesh"]["n_nodes"] == 130 and solution.mesh.cells.shape == (216, 3)
    assert list(tmp_path.iterdir()) == []


def test_a_case_that_names_its_folder_writes_what_the_program_writes(tmp_path):
    case = {**linear(SQUARE), "output": {"directory": tmp_path / "out"}}
    solution = femtile.solve(case)
    assert set(solution.report["files"]) == {"solution.vtu", "residuals.svg"}
    written = femtile.mesh.read(tmp_path / "out" / "solution.vtu")
    assert np.array_equal(written.node_fields["u"], solution.fields["u"])


def test_a_case_file_is_solved_with_its_mesh_beside_it(tmp_path):
    femtile.mesh.square([3, 3]).write(tmp_path / "plate.msh")
    path = tmp_path / "case.toml"
    path.write_text('[mesh]\nfile = "plate.msh"\n[equation]\nsource = 1\n[[boundary]]\nwhere = "all"\ndirichlet = 0\n')
    assert femtile.solve(path).report["mesh"]["n_nodes"] == 16
    path.write_text(path.read_text().replace("dirichlet", "dirichet"))
    with pytest.raises(femtile.CaseError, match="dirichlet") as caught:
        femtile.solve(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("cell", ["triangle", "quadrilateral"])
def test_fields_and_functionals_come_with_the_solution(cell):
    mesh = femtile.mesh.square([8, 8], cell=cell)
    problem = femtile.Poisson(mesh, source=1.0).dirichlet("all", "x*y")
    solution = problem.solve(fields=("gradient", "error"), functionals=({"name": "top", "kind": "max"},))
    n = len(solution.mesh.points)
    assert solution.fields["gradient"].shape == (n, 3) and solution.cell_fields["error"].shape == (mesh.n_cells,)
    assert solution.report["functionals"]["top"] == pytest.approx(solution.fields["u"].max())


@pytest.mark.parametrize("degree", [1, 2, 5])
def test_any_degree_has_its_points(degree):
    mesh = femtile.mesh.box([2, 2, 2], cell="hexahedron")
    solution = femtile.Poisson(mesh, degree=degree).dirichlet("all", "1 + x + 2*y - z").solve()
    points = solution.mesh.points
    assert solution.mesh.cells.shape == (8, (degree + 1) ** 3) and solution.mesh.order == degree
    assert np.allclose(solution.fields["u"], 1 + points @ [1, 2, -1])


def test_several_components_are_columns():
    mesh = femtile.mesh.square([4, 4], cell="quadrilateral")
    problem = femtile.Poisson(mesh, degree=2, components=2).dirichlet("all", ["x", "y"])
    assert np.allclose(problem.solve().fields["u"], problem.solve().mesh.points[:, :2])


def test_arrays_are_coefficients_of_cells():
    mesh = femtile.mesh.square([16, 4])
    middle = mesh.points[mesh.cells].mean(axis=1)
    sigma = np.where(middle[:, 0] < 0.5, 1.0, 4.0)
    problem = femtile.Poisson(mesh, sigma).dirichlet("xmin", 0).dirichlet("xmax", 1)
    u, x = problem.solve().fields["u"], mesh.points[:, 0]
    assert np.allclose(u[x == 0.5], 0.8)
    with pytest.raises(femtile.ArgumentError, match="sigma: 3 entries for 128 cells"):
        femtile.Poisson(mesh, np.ones(3))


def test_conditions_are_those_of_the_program():
    mesh = femtile.mesh.square([8, 8])
    flux = femtile.Poisson(mesh).neumann("xmin", -1).robin("xmax", 2, 5).solve()
    assert np.allclose(flux.fields["u"], 4.5 - (mesh.points[:, 0] - 1) * -1 - 0, atol=1e-8)
    node = femtile.Poisson(mesh).neumann("xmin", -1).neumann("xmax", 1).dirichlet_at_nodes("x < 1e-9 && y < 1e-9", 5)
    assert np.allclose(node.solve().fields["u"], 5 + mesh.points[:, 0], atol=1e-7)


@pytest.mark.parametrize(
    ("change", "key", "message"),
    [
        ({"solver": {"tolerance": 2}}, "solver.tolerance", "below 1"),
        ({"sover": {}}, None, "solver"),
        ({"equation": {"sigma": "1 + q"}}, "equation.sigma", "q"),
        ({"boundary": [{"where": "xmim", "dirichlet": 1}]}, "boundary[0].where", "xmin"),
        ({"mesh": {"file": "absent.msh"}}, "mesh.file", "absent.msh"),
        ({"mesh": {"generate": {"kind": "square", "cells": [0, 1]}}}, "mesh.generate.cells", "0"),
    ],
)
def test_wrong_cases_have_the_messages_of_the_program(change, key, message):
    with pytest.raises(femtile.CaseError, match=message) as caught:
        femtile.solve({**linear(SQUARE), **change})
    if key is not None:
        assert caught.value.argument == key


@pytest.mark.parametrize("value", [float("nan"), object(), 1j, None])
def test_what_cannot_stand_in_a_case_is_refused(value):
    with pytest.raises(femtile.Error) as caught:
        femtile.solve({**linear(SQUARE), "equation": {"sigma": value}})
    assert caught.value.argument == "case" or isinstance(caught.value, femtile.CaseError)


def test_what_is_no_case_or_no_mesh_is_refused():
    for arguments in [(3,), (linear(SQUARE), "mesh")]:
        with pytest.raises(femtile.ArgumentTypeError):
            femtile.solve(*arguments)
    with pytest.raises(femtile.CaseError, match="beside the case"):
        femtile.solve(linear(SQUARE), femtile.mesh.square([2, 2]))


def test_frames_come_while_the_run_goes_on_and_end_as_the_solution_does():
    with femtile.frames(HEAT) as run:
        frames = list(run)
    assert np.allclose([time for time, _ in frames], [0, 0.05, 0.1, 0.15, 0.2])
    assert run.report is not None and run.report["time"]["steps"] == 20
    end = femtile.solve(HEAT)
    assert np.array_equal(frames[-1][1].fields["u"], end.fields["u"])
    assert frames[0][1].report == {} and not frames[0][1].fields["u"].any()
    assert list(run) == []


def test_a_run_whose_frames_are_left_ends():
    case = {**HEAT, "time": {"method": "bdf2", "end": 1e6, "steps": 10_000_000, "frames": {"every": 1e5}}}
    run = femtile.frames(case)
    next(run)
    before = time.perf_counter()
    run.close()
    assert time.perf_counter() - before < 5 and list(run) == []


def test_errors_of_a_run_come_from_the_iterator():
    with pytest.raises(femtile.CaseError, match=r"time\.steps|steps"):
        list(femtile.frames({**HEAT, "time": {"method": "bdf2", "end": 1, "steps": 0}}))


def test_grids_and_hearts_have_their_fields():
    grid = {
        "mesh": {"generate": {"kind": "grid", "nodes": [5, 6, 7]}},
        "equation": {"kind": "diffusion", "source": 1},
        "time": {"end": 1, "steps": 4},
    }
    solution = femtile.solve(grid)
    assert np.allclose(solution.fields["u"], 1) and solution.mesh.cells.shape == (4 * 5 * 6, 8)
    with pytest.raises(femtile.CaseError):
        femtile.solve({"mesh": SQUARE, "equation": {"kind": "monodomain"}})


def test_the_schema_names_every_section():
    assert {"mesh", "equation", "boundary", "solver", "output"} <= set(femtile.schema()["properties"])


def test_ctrl_c_ends_a_solve():
    case = {**HEAT, "time": {"method": "bdf2", "end": 1e6, "steps": 50_000_000}, "solver": {"time_limit_s": 30}}
    # A process in the background of a shell ignores the signal.
    before_test = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    before = time.perf_counter()
    try:
        with pytest.raises(KeyboardInterrupt):
            femtile.solve(case)
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before_test)
    assert time.perf_counter() - before < 10


def test_other_threads_run_while_a_solve_does():
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.002)

    thread = threading.Thread(target=tick)
    thread.start()
    case = {**HEAT, "mesh": {"generate": {"kind": "square", "cells": [60, 60]}}}
    begun = time.perf_counter()
    try:
        femtile.solve(case)
    finally:
        done.set()
        thread.join()
    seconds = time.perf_counter() - begun
    assert len(ticks) > 20 * seconds


def test_a_study_has_a_row_for_each_combination(tmp_path):
    case = {**linear(SQUARE), "output": {"functionals": [{"name": "top", "kind": "max"}]}}
    vary = {"boundary[1].dirichlet": [2, 3], "mesh.refine": range(2), "solver.preconditioner": "amg,jacobi"}
    rows = femtile.study(case, vary, tmp_path / "study")
    assert [row["boundary[1].dirichlet"] for row in rows] == [2, 2, 2, 2, 3, 3, 3, 3]
    assert [row["mesh.refine"] for row in rows[:4]] == [0, 0, 1, 1]
    assert np.allclose([row["top"] for row in rows], [2, 2, 2, 2, 3, 3, 3, 3])
    assert all(row["converged"] and row["failure"] is None for row in rows)
    assert (tmp_path / "study" / rows[0]["folder"] / "report.json").exists()
    assert femtile.study(case, vary, tmp_path / "study") == rows
    page = tmp_path / "beside" / "study.html"
    beside = femtile.study(case, vary, tmp_path / "beside", jobs=2, report=page)
    assert [row["top"] for row in beside] == [row["top"] for row in rows]
    assert "mesh.refine" in page.read_text()
    with pytest.raises(femtile.ArgumentError, match="jobs"):
        femtile.study(case, vary, tmp_path / "study", jobs=0)
    with pytest.raises(femtile.CaseError, match="vary solver.tolrance"):
        femtile.study(case, {"solver.tolrance": [1e-6]}, tmp_path / "study")
    with pytest.raises(TypeError, match="vary"):
        femtile.study(case, ["mesh.refine"], tmp_path / "study")
