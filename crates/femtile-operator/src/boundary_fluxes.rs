//! Fluxes through facets: those of the integrals over boundary facets and interfaces, and those of the gradient.

use femtile_form::{Domain, Integral};

use crate::discrete_form::{DiscreteForm, State};
use crate::error::OperatorError;
use crate::reference::{AtPoint, SiteIntegral};
use crate::sites::for_sites;

/// The flux $n\cdot f_1$ through a boundary facet, against the shape functions on it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConormalFlux {
    /// Degrees of freedom of the closed facet: `[n]`.
    pub dofs: Vec<u32>,
    /// $\int_F n\cdot f_1\,\varphi_i$: `[n][n_components]`.
    pub moments: Vec<f64>,
    /// Length or area of the facet.
    pub measure: f64,
}

impl DiscreteForm<'_> {
    /// Returns the flux of the integrals over cells through some boundary facets: of diffusion that of $\sigma\nabla u$, of
    /// elasticity the traction.
    ///
    /// # Errors
    /// [`OperatorError::Length`], folded cells, and [`femtile_form::FormError::IntegrandNotFinite`].
    pub fn conormal_fluxes(
        &self,
        state: &State<'_>,
        facets: &[u32],
    ) -> Result<Vec<ConormalFlux>, OperatorError> {
        self.check_state(state)?;
        let (n, d) = (self.form().n_components(), self.form().dimension());
        let sides = self.space().boundary_facets(self.boundary());
        let mut found = Vec::with_capacity(facets.len());
        let domain = Domain::Boundary(facets.to_vec());
        for_sites(self, &domain, &mut |site| {
            let side = sides[facets[found.len()] as usize];
            let locals = &self.space().element().facets()[side.facet].dofs;
            let mut flux = ConormalFlux {
                dofs: locals.iter().map(|&local| site.sides[0].dofs[local]).collect(),
                moments: vec![0.0; locals.len() * n],
                measure: site.weights.iter().sum(),
            };
            let mut add = |at: AtPoint<'_>| {
                let f = at.evaluate(at.integrand.residual(), "the residual")?;
                let shapes = site.sides[0].shapes(at.q);
                for (component, f) in f.chunks_exact(1 + d).enumerate() {
                    let along: f64 = f[1..].iter().zip(&site.normals[at.q]).map(|(f, n)| f * n).sum();
                    for (i, &local) in locals.iter().enumerate() {
                        flux.moments[i * n + component] += site.weights[at.q] * along * shapes[local][0];
                    }
                }
                Ok(())
            };
            for integral in self.form().integrals().iter().filter(|own| own.domain == Domain::Cells) {
                let (integrand, domain) = (&integral.integrand, domain.name());
                SiteIntegral { discrete: self, integrand, domain, state }.for_points(site, &mut add)?;
            }
            found.push(flux);
            Ok(())
        })?;
        Ok(found)
    }

    /// Returns the flux into the domain that the integrals over boundary facets and over interfaces give to each of these facets,
    /// $-\int_F b_0$, of interfaces to both sides: `[n_facets][n_components]`.
    ///
    /// # Errors
    /// As [`Self::conormal_fluxes`].
    pub fn prescribed_fluxes(&self, state: &State<'_>) -> Result<Vec<f64>, OperatorError> {
        self.check_state(state)?;
        let (n, d) = (self.form().n_components(), self.form().dimension());
        let mut fluxes = vec![0.0; self.boundary().len() * n];
        for integral in self.form().integrals() {
            let of_facets = &integral.domain;
            let sides: Vec<&[u32]> = match of_facets {
                Domain::Boundary(facets) => facets.chunks(1).collect(),
                Domain::Interface(pairs) => pairs.iter().map(<[u32; 2]>::as_slice).collect(),
                Domain::Cells | Domain::Interior => continue,
            };
            let (integrand, domain) = (&integral.integrand, of_facets.name());
            let integral = SiteIntegral { discrete: self, integrand, domain, state };
            let mut sides = sides.into_iter();
            for_sites(self, of_facets, &mut |site| {
                let Some(facets) = sides.next() else { return Ok(()) };
                integral.for_points(site, &mut |at| {
                    let f = at.evaluate(at.integrand.residual(), "the residual")?;
                    let weight = site.weights[at.q];
                    for (&facet, of_side) in facets.iter().zip(f.chunks_exact(n * (1 + d))) {
                        let own = &mut fluxes[facet as usize * n..][..n];
                        let of_components = own.iter_mut().zip(of_side.chunks_exact(1 + d));
                        of_components.for_each(|(own, f)| *own -= weight * f[0]);
                    }
                    Ok(())
                })
            })?;
        }
        Ok(fluxes)
    }

    /// Calls a function with row, column and value of each contribution of the integrals over interfaces to the tangent.
    ///
    /// # Errors
    /// As [`Self::conormal_fluxes`].
    pub fn for_interface_entries(
        &self,
        state: &State<'_>,
        found: &mut dyn FnMut(u32, u32, f64),
    ) -> Result<(), OperatorError> {
        self.check_state(state)?;
        let is_interface = |own: &&Integral| matches!(own.domain, Domain::Interface(_));
        for integral in self.form().integrals().iter().filter(is_interface) {
            let (integrand, domain) = (&integral.integrand, integral.domain.name());
            let at = SiteIntegral { discrete: self, integrand, domain, state };
            for_sites(self, &integral.domain, &mut |site| at.for_entries(std::slice::from_ref(site), found))?;
        }
        Ok(())
    }
}
