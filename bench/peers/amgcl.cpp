// Times AMGCL on a system that `femtile bench amg --peers` wrote: conjugate gradients with smoothed aggregation and
// SPAI-0. Arguments: file, repeats, tolerance relative to b. Prints JSON.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <amgcl/adapter/crs_tuple.hpp>
#include <amgcl/amg.hpp>
#include <amgcl/backend/builtin.hpp>
#include <amgcl/coarsening/smoothed_aggregation.hpp>
#include <amgcl/make_solver.hpp>
#include <amgcl/relaxation/spai0.hpp>
#include <amgcl/solver/cg.hpp>

struct System {
    std::vector<ptrdiff_t> offsets, columns;
    std::vector<double> values, rhs;
};

template <class Stored, class Kept> std::vector<Kept> read(std::ifstream &file, size_t n) {
    std::vector<Stored> stored(n);
    file.read(reinterpret_cast<char *>(stored.data()), n * sizeof(Stored));
    if (!file) {
        std::fprintf(stderr, "the file is too short\n");
        std::exit(1);
    }
    return {stored.begin(), stored.end()};
}

static double seconds_since(std::chrono::steady_clock::time_point begun) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

static std::string list(const std::vector<double> &seconds) {
    std::ostringstream text;
    for (size_t i = 0; i < seconds.size(); ++i) text << (i ? ", " : "") << seconds[i];
    return "[" + text.str() + "]";
}

static double relative_residual(const System &system, const std::vector<double> &x) {
    double squares = 0, of_rhs = 0;
    for (size_t i = 0; i < system.rhs.size(); ++i) {
        double r = system.rhs[i];
        for (ptrdiff_t k = system.offsets[i]; k < system.offsets[i + 1]; ++k)
            r -= system.values[k] * x[system.columns[k]];
        squares += r * r;
        of_rhs += system.rhs[i] * system.rhs[i];
    }
    return std::sqrt(squares / of_rhs);
}

// What the printed table of levels says; AMGCL has no other way to ask.
static double operator_complexity(const std::string &table) {
    const std::string name = "Operator complexity:";
    return std::strtod(table.c_str() + table.find(name) + name.size(), nullptr);
}

using Backend = amgcl::backend::builtin<double>;
using Levels = amgcl::amg<Backend, amgcl::coarsening::smoothed_aggregation, amgcl::relaxation::spai0>;
using Solver = amgcl::make_solver<Levels, amgcl::solver::cg<Backend>>;

static std::string measure(const System &system, int repeats, double tolerance) {
    const size_t n = system.rhs.size();
    auto a = std::tie(n, system.offsets, system.columns, system.values);
    Solver::params parameters;
    parameters.solver.tol = tolerance;
    parameters.solver.maxiter = 1000;
    std::vector<double> setup, solve, x(n);
    size_t iterations = 0;
    double complexity = 0;
    for (int run = 0; run < repeats; ++run) {
        auto begun = std::chrono::steady_clock::now();
        Solver solver(a, parameters);
        setup.push_back(seconds_since(begun));
        std::fill(x.begin(), x.end(), 0.0);
        begun = std::chrono::steady_clock::now();
        std::tie(iterations, std::ignore) = solver(system.rhs, x);
        solve.push_back(seconds_since(begun));
        std::ostringstream table;
        table << solver.precond();
        complexity = operator_complexity(table.str());
    }
    std::ostringstream text;
    text.precision(12);
    text << "{\"library\": \"AMGCL\", \"method\": \"SA, SPAI-0\", \"seconds_setup\": " << list(setup)
         << ", \"seconds_solve\": " << list(solve) << ", \"iterations\": " << iterations << ", \"residual\": " << relative_residual(system, x)
         << ", \"operator_complexity\": " << complexity << "}";
    return text.str();
}

int main(int, char **arguments) {
    std::ifstream file(arguments[1], std::ios::binary);
    const int repeats = std::atoi(arguments[2]);
    const double tolerance = std::atof(arguments[3]);
    const auto counts = read<uint64_t, uint64_t>(file, 2);
    System system;
    system.offsets = read<uint32_t, ptrdiff_t>(file, counts[0] + 1);
    system.columns = read<uint32_t, ptrdiff_t>(file, counts[1]);
    system.values = read<double, double>(file, counts[1]);
    system.rhs = read<double, double>(file, counts[0]);
    std::printf("[%s]\n", measure(system, repeats, tolerance).c_str());
}
