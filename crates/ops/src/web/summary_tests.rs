use super::*;

fn page() -> String {
    let filler = "The lathe is a machine tool that rotates a workpiece about an axis. Turning shapes metal and wood. ";
    format!(
        "{}\nThe price of the small model is 340 euros. Delivery takes nine days. {}The shop in Graz opens at noon.",
        filler.repeat(6),
        filler.repeat(6)
    )
}

#[test]
fn the_sentences_that_fit_the_task_are_chosen() {
    let price = extract(&page(), "What is the price of the small model?");
    assert!(price.contains("340 euros") && !price.contains("Graz"), "{price}");
    let shop = extract(&page(), "When does the shop open in Graz?");
    assert!(shop.contains("opens at noon") && !shop.contains("340"), "{shop}");
}

#[test]
fn a_general_task_gets_what_the_text_is_about() {
    let summary = extract(&page(), "Summarize the page");
    assert!(summary.contains("machine tool") && summary.chars().count() <= MAX_SUMMARY_CHARS, "{summary}");
}

#[test]
fn short_and_strange_texts_are_summarised_too() {
    assert_eq!(extract("One sentence.", "anything"), "One sentence.");
    assert_eq!(extract("", "anything"), "");
    let endless = "x".repeat(100_000);
    assert!(extract(&endless, "x").chars().count() <= MAX_SUMMARY_CHARS);
    let many = "Grüße und Küsse aus 東京。".repeat(2_000);
    assert!(!extract(&many, "東京").is_empty());
}
