// Times products and iterations of conjugate gradients of deal.II with the Laplacian on a cube, of degree DEGREE.
//
// Arguments: rule (`gauss` or `lobatto`, p + 1 points), shape (`cartesian` or `deformed`), cells a side, `product` or
// `iteration`, number of runs, iterations of a solve. Prints JSON. Each run is a product, or the mean over the iterations of
// a solve but for the first. Several ranks of MPI divide the work.

#include <cstdio>
#include <cstdlib>

#include <deal.II/base/mpi.h>
#include <deal.II/dofs/dof_renumbering.h>
#include <deal.II/fe/fe_q.h>
#include <deal.II/fe/mapping_q1.h>
#include <deal.II/grid/grid_generator.h>
#include <deal.II/grid/grid_tools.h>
#include <deal.II/grid/tria.h>
#include <deal.II/lac/diagonal_matrix.h>
#include <deal.II/lac/solver_cg.h>
#include <deal.II/lac/solver_control.h>

#include "dealii_laplace.h"

using Operator = Laplace<DEGREE, double>;

// The operator without work inside its loop, so that SolverCG passes over vectors on its own.
struct Plain {
    const Operator &a;
    void vmult(Vector<double> &y, const Vector<double> &x) const { a.vmult(y, x); }
};

// Ends after some iterations and notes the times of the first and the last.
struct Watch : dealii::SolverControl {
    explicit Watch(unsigned iterations) : dealii::SolverControl(iterations, 0.0), last(iterations) {}

    State check(const unsigned step, const double residual) override {
        if (step == 1) begun = now();
        if (step < last) return dealii::SolverControl::check(step, residual);
        ended = now();
        return success;
    }

    double seconds() const { return (ended - begun) / (last - 1); }

    unsigned last;
    double begun = 0, ended = 0;
};

template <typename Matrix>
double iteration(const Matrix &a, const dealii::DiagonalMatrix<Vector<double>> &jacobi, const Vector<double> &b,
                 unsigned iterations) {
    Vector<double> x(b);
    x = 0.0;
    Watch watch(iterations);
    dealii::SolverCG<Vector<double>> cg(watch);
    cg.solve(a, x, b, jacobi);
    return watch.seconds();
}

struct Variant {
    std::string name;
    std::vector<double> seconds;
};

// Times products, or both ways to iterate.
std::vector<Variant> measure(const Operator &a, const std::string &suffix, bool has_iterations, unsigned runs,
                             unsigned iterations) {
    Vector<double> x, y;
    a.initialize_dof_vector(x);
    a.initialize_dof_vector(y);
    for (unsigned i = 0; i < x.locally_owned_size(); ++i) x.local_element(i) = (i % 17) * 0.1;
    a.vmult(y, x);
    if (!has_iterations) {
        Variant products{"product" + suffix, {}};
        for (unsigned run = 0; run < runs; ++run) {
            const double begun = now();
            a.vmult(y, x);
            products.seconds.push_back(now() - begun);
        }
        return {products};
    }
    const dealii::DiagonalMatrix<Vector<double>> jacobi(a.inverse_diagonal());
    Variant plain{"pcg" + suffix, {}}, merged{"merged-pcg" + suffix, {}};
    for (unsigned run = 0; run < runs; ++run) {
        plain.seconds.push_back(iteration(Plain{a}, jacobi, y, iterations));
        merged.seconds.push_back(iteration(a, jacobi, y, iterations));
    }
    return {plain, merged};
}

// Moves every point of the unit cube by a tenth of the product of sines, along each axis.
dealii::Point<3> deformed(const dealii::Point<3> &point) {
    double product = 0.1;
    for (unsigned axis = 0; axis < 3; ++axis) product *= std::sin(dealii::numbers::PI * point[axis]);
    return point + dealii::Point<3>(product, product, product);
}

int main(int count, char **arguments) {
    const dealii::Utilities::MPI::MPI_InitFinalize mpi(count, arguments, 1);
    if (count != 7) return std::fprintf(stderr, "six arguments are needed\n"), 1;
    const std::string rule = arguments[1], shape = arguments[2], quantity = arguments[4];
    const unsigned cells = std::atoi(arguments[3]), runs = std::atoi(arguments[5]), iterations = std::atoi(arguments[6]);

    const std::unique_ptr<dealii::Triangulation<3>> mesh = empty_mesh();
    dealii::GridGenerator::subdivided_hyper_cube(*mesh, cells);
    if (shape == "deformed") dealii::GridTools::transform(deformed, *mesh);
    const dealii::FE_Q<3> element(DEGREE);
    dealii::DoFHandler<3> unknowns(*mesh);
    unknowns.distribute_dofs(element);
    dealii::AffineConstraints<double> none;
    clear(none, unknowns);
    none.close();
    // The library has this renumbering for one lane only; the order is good for more.
    using OneLane = MatrixFree<3, double, VectorizedArray<double, 1>>;
    OneLane::AdditionalData settings;
    settings.tasks_parallel_scheme = OneLane::AdditionalData::none;
    dealii::DoFRenumbering::matrix_free_data_locality(unknowns, none, settings);

    dealii::Quadrature<1> points = dealii::QGauss<1>(DEGREE + 1);
    if (rule == "lobatto") points = dealii::QGaussLobatto<1>(DEGREE + 1);
    Operator a;
    a.initialize(matrix_free<double>(dealii::MappingQ1<3>(), unknowns, none, points));

    // Numbers that do not depend on the order of unknowns.
    const Vector<double> diagonal = a.diagonal();
    Vector<double> product(diagonal);
    a.vmult(product, diagonal);
    const double energy = product * diagonal;

    std::vector<Variant> variants = measure(a, "", quantity == "iteration", runs, iterations);
    a.store_coefficients();
    a.vmult(product, diagonal);
    if (std::abs(product * diagonal - energy) > 1e-10 * energy)
        return std::fprintf(stderr, "six coefficients a point change the product\n"), 1;
    for (Variant &variant : measure(a, ", six coefficients", quantity == "iteration", runs, iterations))
        variants.push_back(std::move(variant));

    const double trace = diagonal.mean_value() * diagonal.size();
    if (!prints()) return 0;
    std::printf("{\"library\": \"deal.II %s\", \"lanes\": %u, \"n_dofs\": %llu, \"trace\": %.15e, \"energy\": %.15e, \"variants\": [",
                DEAL_II_PACKAGE_VERSION, unsigned(VectorizedArray<double>::size()),
                static_cast<unsigned long long>(unknowns.n_dofs()), trace, energy);
    for (size_t i = 0; i < variants.size(); ++i)
        std::printf("%s{\"name\": \"%s\", \"seconds\": %s}", i ? ", " : "", variants[i].name.c_str(),
                    json(variants[i].seconds).c_str());
    std::printf("]}\n");
}
