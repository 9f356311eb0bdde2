"""Compiles amgcl.cpp against the checkout that FEMTILE_AMGCL names, once in a folder, and runs it.

Arguments: folder with amgcl.cpp, file, threads, repeats, tolerance relative to b. Prints JSON.
"""

import os
import shutil
import subprocess
import sys

folder, file, threads, repeats, tolerance = sys.argv[1:]
checkout = os.environ.get("FEMTILE_AMGCL")
if not checkout or not os.path.isfile(os.path.join(checkout, "amgcl", "amg.hpp")):
    sys.exit("FEMTILE_AMGCL names no checkout of AMGCL")
compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
if compiler is None:
    sys.exit("there is no C++ compiler")

program, source = os.path.join(folder, "amgcl"), os.path.join(folder, "amgcl.cpp")
if not os.path.exists(program):
    flags = ["-std=c++17", "-O3", "-march=native", "-fopenmp", "-DNDEBUG", "-DAMGCL_NO_BOOST"]
    command = [compiler, *flags, "-isystem", checkout, source, "-o", program]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if "error" in line]
        sys.exit(f"{compiler}: {errors[0] if errors else 'it failed'}")
environment = dict(os.environ, OMP_NUM_THREADS=threads)
sys.exit(subprocess.run([program, file, repeats, tolerance], env=environment).returncode)
