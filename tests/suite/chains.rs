//! Inputs of small chains that have between them all that production has, with residuals that are large, for their bits alone.

/// All that the quickstart has not: rectangles, the symmetric form, a doublet of two masses, double precision, whole links,
/// integrators of fourth order with the force gradient, guesses, cycles of stochastic molecular dynamics, the Symanzik flow.
pub const OTHER: &str = r#"
[run]
name = "quickstart"
seed = 7
trajectories = 2
thermalisation = 1
[lattice]
extents = [8, 4, 4, 8]
[gauge]
action = "symanzik"
beta = 4.0
[fermion.light]
action = "wilson-clover"
kappa = 0.12
c_sw = 1.0
boundary = ["periodic", 0.3, "antiperiodic", "antiperiodic"]
preconditioning = "symmetric"
[fermion.light.solver]
precision = "double"
link_reals = 18
guess = 3
[fermion.heavy]
action = "wilson-clover"
kappa = 0.11
c_sw = 1.0
twisted_mass = 0.4
mass_splitting = 0.3
preconditioning = "asymmetric"
[fermion.heavy.rational]
range = [2.0, 60.0]
action_error = 1e-4
force_error = 1e-3
[fermion.heavy.solver]
precision = "double-double-half"
action_residual = 1e-6
force_residual = 1e-4
[hmc.smd]
friction = 0.5
cycles = 2
[[hmc.level]]
integrator = "force-gradient"
steps = 3
terms = ["light", "heavy"]
[[hmc.level]]
integrator = "omf4"
steps = 1
terms = ["gauge"]
[measure.loops]
[measure.flow]
kernel = "symanzik"
t_max = 0.1
[measure.correlator.pion]
fermion = "light"
source = [3, 2, 1, 5]
[measure.meson.kaon]
fermion = "heavy"
other = { fermion = "light" }
channels = ["sp"]
residual = 1e-5
[measure.condensate.light]
fermion = "light"
residual = 1e-5
"#;

/// Nf = 2+1 with all that production has: smeared links, ratios in twisted mass and in mass, one flavour by rational
/// functions and two pseudofermions, every method with every precision, links of 8 reals, three levels. Blocks are of fixed extents.
pub const PRODUCTION: &str = r#"
[run]
name = "quickstart"
seed = 11
trajectories = 2
thermalisation = 1
[lattice]
extents = [8, 4, 4, 8]
[gauge]
action = "iwasaki"
beta = 2.0
[fermion.light]
action = "wilson-clover"
kappa = 0.12
c_sw = 1.2
preconditioning = "asymmetric"
stout = { steps = 1, rho = 0.1 }
[fermion.light.solver]
method = "gcr-dd"
gcr-dd = { block = [2, 2, 2, 4], k_max = 8, n_mr = 4 }
action_residual = 1e-6
force_residual = 1e-5
[[fermion.light.hasenbusch]]
name = "twisted"
mu = 0.2
[fermion.light.hasenbusch.solver]
method = "bicgstab"
precision = "double-half"
[[fermion.light.hasenbusch]]
name = "heavy"
kappa = 0.1
[fermion.light.hasenbusch.solver]
method = "cg"
precision = "double-single"
link_reals = 8
guess = 2
force_residual = 1e-9
[fermion.strange]
action = "wilson-clover"
flavours = 1
kappa = 0.11
c_sw = 1.2
preconditioning = "symmetric"
[fermion.strange.rational]
range = [0.02, 8.0]
copies = 2
action_error = 1e-6
force_error = 1e-4
[fermion.strange.solver]
action_residual = 1e-6
force_residual = 1e-5
[[hmc.level]]
integrator = "2mn"
steps = 1
terms = ["light"]
[[hmc.level]]
integrator = "2mn"
steps = 1
terms = ["twisted", "strange", "heavy"]
[[hmc.level]]
integrator = "omf4"
steps = 1
terms = ["gauge"]
[measure.loops]
[measure.correlator.pion]
fermion = "light"
source = [3, 2, 1, 5]
"#;

/// Staggered quarks with all that they have: HISQ with a Naik correction and asqtad, several pseudofermions, all long
/// links, both strategies, every precision, MILC's integrator, their measurements.
pub const STAGGERED: &str = r#"
[run]
name = "quickstart"
seed = 13
trajectories = 2
thermalisation = 1
[lattice]
extents = [8, 4, 4, 8]
[gauge]
action = "symanzik-1loop"
beta = 6.5
u0 = 0.86
n_f = 3
[fermion.sea]
action = "hisq"
[fermion.sea.rational]
lambda_max = 60
heat_bath_error = 1e-6
action_error = 1e-6
force_error = 1e-4
[fermion.sea.solver]
precision = "double-single"
long_link_reals = 9
heat_bath_residual = 1e-6
action_residual = 1e-6
force_residual = 1e-5
[[fermion.sea.pseudofermion]]
factors = [{ mass = 0.2, power = [2, 4] }, { mass = 0.3, power = [1, 4] }, { mass = 0.6, power = [-3, 4] }]
[[fermion.sea.pseudofermion]]
factors = [{ mass = 0.6, power = [3, 4] }]
copies = 3
[[fermion.sea.pseudofermion]]
factors = [{ mass = 0.7, power = [1, 4] }]
naik_epsilon = -0.25
[fermion.heavy]
action = "asqtad"
u0 = 0.86
boundary = ["periodic", 0.3, "antiperiodic", "antiperiodic"]
[fermion.heavy.rational]
lambda_max = 60
[fermion.heavy.solver]
strategy = "one-by-one"
precision = "double-half"
[[fermion.heavy.pseudofermion]]
factors = [{ mass = 0.5, power = [1, 4] }]
[hmc]
tau = 0.3
[[hmc.level]]
integrator = "3g1f"
steps = 2
terms = ["sea", "heavy"]
[[hmc.level]]
integrator = "3g1f"
terms = ["gauge"]
[measure.loops]
[measure.correlator.pion]
fermion = "sea"
mass = 0.2
source = [3, 2, 1, 5]
[measure.correlator.wall]
fermion = "sea"
mass = 0.7
naik_epsilon = -0.25
source_kind = "corner-wall"
source = [0, 0, 0, 3]
[measure.condensate.light]
fermion = "sea"
mass = 0.2
"#;

/// Nf = 2+1+1 domain-wall quarks with all that they have: weights of every kind, smeared links, a Hasenbusch mass, one flavour
/// exactly and by rational functions of two pseudofermions, every precision, links of 8 reals, guesses.
pub const DOMAIN_WALL: &str = r#"
[run]
name = "quickstart"
seed = 17
trajectories = 2
thermalisation = 1
[lattice]
extents = [8, 4, 4, 4]
[gauge]
action = "iwasaki"
beta = 2.25
[fermion.light]
action = "domain-wall"
weights = "mobius"
b = 1.5
c = 0.5
n_s = 4
m5 = 1.8
mass = 0.2
stout = { steps = 1, rho = 0.1 }
[fermion.light.solver]
precision = "double-single"
action_residual = 1e-6
force_residual = 1e-4
[[fermion.light.hasenbusch]]
name = "heavy"
mass = 0.5
[fermion.light.hasenbusch.solver]
precision = "double-half"
link_reals = 8
guess = 2
force_residual = 1e-9
[fermion.strange]
action = "domain-wall"
weights = "optimal-symmetric"
spectrum = [0.1, 6.4]
n_s = 4
m5 = 1.3
mass = 0.3
flavours = 1
one_flavour = "eofa"
boundary = ["periodic", 0.3, "antiperiodic", "antiperiodic"]
[fermion.strange.rational]
range = [0.2, 20.0]
action_error = 1e-5
[fermion.strange.solver]
precision = "double-half"
action_residual = 1e-6
force_residual = 1e-4
[fermion.charm]
action = "domain-wall"
weights = "optimal"
spectrum = [0.1, 6.4]
n_s = 5
m5 = 1.4
mass = 0.6
flavours = 1
one_flavour = "rational"
[fermion.charm.rational]
range = [1e-3, 20.0]
heavy_range = [1e-3, 20.0]
copies = 2
action_error = 1e-5
force_error = 1e-4
[fermion.charm.solver]
precision = "double-single"
action_residual = 1e-6
force_residual = 1e-4
[hmc]
tau = 0.2
[[hmc.level]]
integrator = "2mn"
steps = 1
terms = ["light", "heavy", "strange", "charm"]
[[hmc.level]]
integrator = "omf4"
steps = 1
terms = ["gauge"]
[measure.loops]
[measure.correlator.pion]
fermion = "light"
residual = 1e-5
"#;

/// The production chain with multigrid for both light ratios, of which the second has a twisted mass, on three levels.
pub fn multigrid() -> String {
    let own = "method = \"multigrid\"\nmultigrid = { aggregate = [2, 2, 2, 4], vectors = 8, coarse_aggregate = [2, 1, 1, 1], \
               k_max = 8, n_mr = 4 }\n";
    let light = PRODUCTION
        .replace("method = \"gcr-dd\"\ngcr-dd = { block = [2, 2, 2, 4], k_max = 8, n_mr = 4 }\n", own);
    let both = light.replace(
        "method = \"bicgstab\"\nprecision = \"double-half\"\n",
        "precision = \"double-single-single\"\n",
    );
    assert!(light != PRODUCTION && both != light, "the chain has changed");
    both
}

/// The production chain, its light quark by multigrid, between an open and a fixed wall; its strange quark has an exponential clover
/// term.
pub fn walls() -> String {
    let mut text = multigrid();
    for (old, new) in [
        (
            "extents = [8, 4, 4, 8]",
            "extents = [8, 4, 4, 8]\ntime_boundary = \"open-schroedinger\"\nphi_prime = [-1.1, 0.4]",
        ),
        ("beta = 2.0", "beta = 2.0\nc_g = [1.1, 0.9]"),
        ("c_sw = 1.2", "c_sw = 1.2\nc_f = 0.95"),
        ("kappa = 0.11\n", "kappa = 0.11\nclover = \"exponential\"\n"),
        ("link_reals = 8", "link_reals = 12"),
    ] {
        assert!(text.contains(old), "the chain has changed: {old}");
        text = text.replace(old, new);
    }
    text
}
