//! The page on models says what there is.

use femtile_cardiac::ionic::Model;

const PAGE: &str = include_str!("../../../../docs/ionic-models.md");

#[test]
fn the_model_of_the_page_is_the_built_in_one() {
    let text = PAGE.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let (found, built_in) = (Model::from_toml(text).unwrap(), Model::named("fitzhugh-nagumo").unwrap());
    assert_eq!(found.constants().collect::<Vec<_>>(), built_in.constants().collect::<Vec<_>>());
    assert_eq!((found.rest_voltage(), found.units()), (built_in.rest_voltage(), built_in.units()));
    assert_eq!(found.states()[0].initial(), built_in.states()[0].initial());
}

#[test]
fn the_page_lists_every_model_with_its_states_variants_and_sources() {
    for name in Model::names() {
        let model = Model::named(name).unwrap();
        let row = PAGE.lines().find(|line| line.starts_with(&format!("| `{name}` |"))).expect(name);
        assert!(row.contains(&format!("| {} |", model.n_states())), "{row}");
        assert!(model.variants().iter().all(|variant| row.contains(&format!("`{variant}`"))), "{row}");
        assert!(row.contains(&format!("[{}]", model.citations()[0])), "{row}");
    }
}
