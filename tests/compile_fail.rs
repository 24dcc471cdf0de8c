//! What must not compile: settling twice, settling what was refused, billing what the gate did not accept.

#[test]
fn money_cannot_be_taken_wrongly() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
