"""Compiles a program that times deal.II, for as many bits of a vector as ours, and runs it.

Arguments: folder with the sources, name of the program, bits (256 or 512), degree of the elements, ranks of MPI, arguments
of the program, which prints JSON. What is compiled stays in the cache folder (FEMTILE_CACHE, by default the user's) under a hash of
the sources, the compiler and the processor, as it takes minutes.
"""

import glob
import hashlib
import os
import shutil
import subprocess
import sys

folder, program, bits, degree, ranks, *rest = sys.argv[1:]
CONFIG = "/usr/include/deal.II/base/config.h"
LANES = "VECTORIZATION_WIDTH_IN_BITS"
# Folders of headers that those of deal.II include, as in Debian.
INCLUDED = ["trilinos", "hdf5/openmpi", "suitesparse", "opencascade"]
INCLUDED = [f"/usr/include/{name}" for name in INCLUDED] + ["/usr/lib/petsc/include", *glob.glob("/usr/lib/*/openmpi/include")]
# Products of degree 7 were wrong at -O2 with GCC 12. 256 bits are those of AVX2, with its registers, on any processor.
FLAGS = ["-std=c++17", "-O3", "-march=native", "-DNDEBUG", "-w"]
FLAGS += ["-mno-avx512f"] if bits == "256" else ["-mprefer-vector-width=512"]

if not os.path.isfile(CONFIG):
    sys.exit(f"there is no {CONFIG}")
compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
if compiler is None:
    sys.exit("there is no C++ compiler")


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def processor():
    lines = text_of("/proc/cpuinfo").splitlines()
    return sorted({line for line in lines if line.startswith(("model name", "flags"))})


def cache():
    named = os.environ.get("FEMTILE_CACHE")
    if named == "":
        return folder
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(named or os.path.join(user, "femtile"), "dealii")


def hashed(*texts):
    about = [subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout, *FLAGS, *processor()]
    return hashlib.sha256("\n".join([*about, config, *texts]).encode()).hexdigest()[:16]


def source(name):
    return os.path.join(folder, name)


def begin(arguments, target):
    """Begins to make a file, which appears when `finish` has seen it done."""
    command = [compiler, *arguments, "-o", f"{target}.{os.getpid()}"]
    return target, subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def finish(jobs):
    for target, job in jobs:
        said = job.communicate()[1]
        if job.returncode != 0:
            errors = [line for line in said.splitlines() if "error" in line or "undefined" in line]
            sys.exit(f"{compiler}: {errors[0] if errors else 'it failed'}")
        os.replace(f"{target}.{os.getpid()}", target)


def build(target):
    """Compiles against a configuration with all lanes: the one of a package has one."""
    shadow = os.path.join(folder, f"lanes{bits}")
    os.makedirs(os.path.join(shadow, "deal.II", "base"), exist_ok=True)
    with open(os.path.join(shadow, "deal.II", "base", "config.h"), "w", encoding="utf-8") as file:
        file.write(config)
    shared = [*FLAGS, f"-DDEGREE={degree}", f"-I{shadow}", *(f"-I{path}" for path in INCLUDED), "-c"]
    parts = os.path.join(os.path.dirname(target), f"lanes-{hashed(text_of(source('dealii_lanes.cc')))}.o")
    jobs = [begin([*shared, source(f"{program}.cc")], f"{target}.o")]
    if not os.path.exists(parts):
        jobs.append(begin([*shared, source("dealii_lanes.cc")], parts))
    finish(jobs)
    finish([begin([f"{target}.o", parts, "-Wl,--copy-dt-needed-entries", "-ldeal.ii"], target)])
    os.remove(f"{target}.o")


config = "\n".join(
    f"#define DEAL_II_{LANES} {bits}" if line.startswith(f"#define DEAL_II_{LANES}") else line
    for line in text_of(CONFIG).splitlines()
) + "\n"
os.makedirs(cache(), exist_ok=True)
texts = [text_of(source(name)) for name in (f"{program}.cc", "dealii_laplace.h", "dealii_lanes.cc")]
built = os.path.join(cache(), f"{program}-p{degree}-{hashed(*texts)}")
if not os.path.exists(built):
    build(built)
environment = dict(os.environ, DEAL_II_NUM_THREADS="1", OMP_NUM_THREADS="1")
launcher = []
if ranks != "1":
    # In containers the user is often root.
    environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    launcher = [shutil.which("mpirun") or sys.exit("there is no mpirun"), "--oversubscribe"]
    launcher += ["--bind-to", "core:overload-allowed", "-n", ranks]
sys.exit(subprocess.run([*launcher, built, *rest], env=environment).returncode)
