//! The list of what the product reports, as data: per concept its tags in order of preference.
//!
//! Owns names and tags only; how a value is chosen among them is `pick`'s business. The order of the table is the order
//! of the facts. A tag that means something else (a part, or a sum with minorities) is a concept of its own with its own
//! label, never a silent stand-in.

/// Whether a concept is a sum over a period or a state at a moment. Entries of the other kind are not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Over a year.
    Duration,
    /// At the end of a year.
    Instant,
}

/// What a concept is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Money of the reporting currency.
    Money,
    /// Money per share.
    PerShare,
    /// Shares.
    Shares,
    /// A plain fraction.
    Pure,
}

/// How much the product depends on a concept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Counts for coverage; when it is missing it is named.
    Core,
    /// When it is missing it is named, but banks and others have none.
    Listed,
    /// Reported when it is there.
    Extra,
}

/// One thing that the product reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Concept {
    /// Name for rules over facts.
    pub(crate) key: &'static str,
    /// Label for readers.
    pub(crate) label: &'static str,
    /// Period or moment.
    pub(crate) kind: Kind,
    /// Unit class.
    pub(crate) measure: Measure,
    /// Dependence.
    pub(crate) weight: Weight,
    /// The year before is reported too.
    pub(crate) with_prior: bool,
    /// Tags, best first.
    pub(crate) tags: &'static [&'static str],
    /// Left out when it equals this other concept: it would be the same number under a second name.
    pub(crate) unless_equal_to: Option<&'static str>,
}

/// Share count of the cover page; read from any form, at its own date.
pub(crate) const SHARES_TAG: &str = "dei:EntityCommonStockSharesOutstanding";
/// Key and label of the share count.
pub(crate) const SHARES: (&str, &str) = ("shares_outstanding", "Shares outstanding");

/// Concepts by which the fiscal year end is found.
pub(crate) const ANCHORS: [&str; 3] = ["net_income", "assets", "operating_cash_flow"];

/// Concepts of which at least one must be there for a memo.
pub(crate) const USABLE: [&str; 3] = ["revenue", "net_income", "assets"];

/// The key whose first tag gives way to its second where the second is larger: total revenues can be filed beside a
/// stray part under the same tag.
pub(crate) const REVENUE: &str = "revenue";

use Kind::{Duration, Instant};
use Measure::{Money, PerShare, Pure, Shares};
use Weight::{Core, Extra, Listed};

/// All annual concepts, in the order in which they are reported.
#[rustfmt::skip]
pub(crate) const TABLE: &[Concept] = &[
    prior(REVENUE, "Revenue", Duration, Money, Core, &[
        "us-gaap:Revenues", "us-gaap:RevenueFromContractWithCustomerExcludingAssessedTax",
        "us-gaap:RevenueFromContractWithCustomerIncludingAssessedTax", "us-gaap:RevenuesNetOfInterestExpense",
        "us-gaap:SalesRevenueNet", "ifrs-full:Revenue",
    ]),
    second("contract_revenue", "Revenue from contracts with customers", Duration, REVENUE, &[
        "us-gaap:RevenueFromContractWithCustomerExcludingAssessedTax", "ifrs-full:RevenueFromContractsWithCustomers",
    ]),
    prior("cost_of_revenue", "Cost of revenue", Duration, Money, Listed, &[
        "us-gaap:CostOfRevenue", "us-gaap:CostOfGoodsAndServicesSold", "us-gaap:CostOfGoodsSold", "ifrs-full:CostOfSales",
    ]),
    prior("gross_profit", "Gross profit", Duration, Money, Listed, &["us-gaap:GrossProfit", "ifrs-full:GrossProfit"]),
    prior("rnd", "Research and development expense", Duration, Money, Listed, &[
        "us-gaap:ResearchAndDevelopmentExpense", "us-gaap:ResearchAndDevelopmentExpenseExcludingAcquiredInProcessCost",
        "ifrs-full:ResearchAndDevelopmentExpense",
    ]),
    one("sga", "Selling, general and administrative expense", Duration, Money, &[
        "us-gaap:SellingGeneralAndAdministrativeExpense", "ifrs-full:SellingGeneralAndAdministrativeExpense",
    ]),
    one("operating_expenses", "Operating expenses", Duration, Money, &["us-gaap:OperatingExpenses"]),
    prior("operating_income", "Operating income", Duration, Money, Core, &[
        "us-gaap:OperatingIncomeLoss", "ifrs-full:ProfitLossFromOperatingActivities",
    ]),
    one("interest_expense", "Interest expense", Duration, Money, &[
        "us-gaap:InterestExpense", "us-gaap:InterestExpenseNonoperating", "ifrs-full:InterestExpense",
    ]),
    one("pretax_income", "Income before tax", Duration, Money, &[
        "us-gaap:IncomeLossFromContinuingOperationsBeforeIncomeTaxesExtraordinaryItemsNoncontrollingInterest",
        "us-gaap:IncomeLossFromContinuingOperationsBeforeIncomeTaxesMinorityInterestAndIncomeLossFromEquityMethodInvestments",
        "ifrs-full:ProfitLossBeforeTax",
    ]),
    one("income_tax", "Income tax expense", Duration, Money, &[
        "us-gaap:IncomeTaxExpenseBenefit", "ifrs-full:IncomeTaxExpenseContinuingOperations",
    ]),
    one("tax_rate", "Effective tax rate as filed", Duration, Pure, &["us-gaap:EffectiveIncomeTaxRateContinuingOperations"]),
    prior("net_income", "Net income", Duration, Money, Core, &[
        "us-gaap:NetIncomeLoss", "ifrs-full:ProfitLossAttributableToOwnersOfParent",
    ]),
    second("profit", "Net income including noncontrolling interests", Duration, "net_income", &[
        "us-gaap:ProfitLoss", "ifrs-full:ProfitLoss",
    ]),
    one("eps_basic", "Basic EPS", Duration, PerShare, &[
        "us-gaap:EarningsPerShareBasic", "ifrs-full:BasicEarningsLossPerShare",
    ]),
    prior("eps_diluted", "Diluted EPS", Duration, PerShare, Core, &[
        "us-gaap:EarningsPerShareDiluted", "ifrs-full:DilutedEarningsLossPerShare",
    ]),
    one("diluted_shares", "Diluted weighted average shares", Duration, Shares, &[
        "us-gaap:WeightedAverageNumberOfDilutedSharesOutstanding", "ifrs-full:AdjustedWeightedAverageShares",
    ]),
    one("dividends_per_share", "Dividends declared per share", Duration, PerShare, &[
        "us-gaap:CommonStockDividendsPerShareDeclared",
    ]),
    prior("operating_cash_flow", "Operating cash flow", Duration, Money, Core, &[
        "us-gaap:NetCashProvidedByUsedInOperatingActivities", "ifrs-full:CashFlowsFromUsedInOperatingActivities",
    ]),
    one("investing_cash_flow", "Investing cash flow", Duration, Money, &[
        "us-gaap:NetCashProvidedByUsedInInvestingActivities", "ifrs-full:CashFlowsFromUsedInInvestingActivities",
    ]),
    one("financing_cash_flow", "Financing cash flow", Duration, Money, &[
        "us-gaap:NetCashProvidedByUsedInFinancingActivities", "ifrs-full:CashFlowsFromUsedInFinancingActivities",
    ]),
    prior("capex", "Capital expenditure", Duration, Money, Extra, &[
        "us-gaap:PaymentsToAcquirePropertyPlantAndEquipment", "us-gaap:PaymentsToAcquireProductiveAssets",
        "ifrs-full:PurchaseOfPropertyPlantAndEquipmentClassifiedAsInvestingActivities",
    ]),
    one("depreciation", "Depreciation and amortization", Duration, Money, &[
        "us-gaap:DepreciationDepletionAndAmortization", "us-gaap:DepreciationAmortizationAndAccretionNet",
        "us-gaap:DepreciationAndAmortization", "ifrs-full:AdjustmentsForDepreciationAndAmortisationExpense",
    ]),
    one("share_based_compensation", "Share-based compensation", Duration, Money, &[
        "us-gaap:ShareBasedCompensation", "ifrs-full:AdjustmentsForSharebasedPayments",
    ]),
    one("buybacks", "Share repurchases", Duration, Money, &[
        "us-gaap:PaymentsForRepurchaseOfCommonStock", "ifrs-full:PaymentsToAcquireOrRedeemEntitysShares",
    ]),
    prior("assets", "Total assets", Instant, Money, Core, &["us-gaap:Assets", "ifrs-full:Assets"]),
    one("current_assets", "Current assets", Instant, Money, &["us-gaap:AssetsCurrent", "ifrs-full:CurrentAssets"]),
    prior("cash", "Cash and cash equivalents", Instant, Money, Core, &[
        "us-gaap:CashAndCashEquivalentsAtCarryingValue", "ifrs-full:CashAndCashEquivalents",
    ]),
    second("cash_and_restricted", "Cash, cash equivalents and restricted cash", Instant, "cash", &[
        "us-gaap:CashCashEquivalentsRestrictedCashAndRestrictedCashEquivalents",
    ]),
    one("receivables", "Accounts receivable", Instant, Money, &["us-gaap:AccountsReceivableNetCurrent"]),
    one("inventory", "Inventory", Instant, Money, &["us-gaap:InventoryNet", "ifrs-full:Inventories"]),
    one("goodwill", "Goodwill", Instant, Money, &["us-gaap:Goodwill", "ifrs-full:Goodwill"]),
    prior("liabilities", "Total liabilities", Instant, Money, Core, &["us-gaap:Liabilities", "ifrs-full:Liabilities"]),
    one("current_liabilities", "Current liabilities", Instant, Money, &[
        "us-gaap:LiabilitiesCurrent", "ifrs-full:CurrentLiabilities",
    ]),
    one("deposits", "Deposits", Instant, Money, &["us-gaap:Deposits"]),
    one("long_term_debt", "Long-term debt including current portion", Instant, Money, &["us-gaap:LongTermDebt"]),
    one("long_term_debt_noncurrent", "Long-term debt, noncurrent", Instant, Money, &["us-gaap:LongTermDebtNoncurrent"]),
    one("borrowings", "Borrowings", Instant, Money, &["ifrs-full:Borrowings"]),
    prior("equity", "Shareholders' equity", Instant, Money, Core, &[
        "us-gaap:StockholdersEquity", "ifrs-full:EquityAttributableToOwnersOfParent",
    ]),
    second("total_equity", "Total equity including noncontrolling interests", Instant, "equity", &[
        "us-gaap:StockholdersEquityIncludingPortionAttributableToNoncontrollingInterest", "ifrs-full:Equity",
    ]),
];

/// The concept with this key.
pub(crate) fn by_key(key: &str) -> Option<&'static Concept> {
    TABLE.iter().find(|concept| concept.key == key)
}

/// Whether any concept reads this tag.
pub(crate) fn is_listed(tag: &str) -> bool {
    tag == SHARES_TAG || TABLE.iter().any(|concept| concept.tags.contains(&tag))
}

const fn prior(
    key: &'static str,
    label: &'static str,
    kind: Kind,
    measure: Measure,
    weight: Weight,
    tags: &'static [&'static str],
) -> Concept {
    Concept { key, label, kind, measure, weight, with_prior: true, tags, unless_equal_to: None }
}

const fn one(
    key: &'static str,
    label: &'static str,
    kind: Kind,
    measure: Measure,
    tags: &'static [&'static str],
) -> Concept {
    Concept { key, label, kind, measure, weight: Extra, with_prior: false, tags, unless_equal_to: None }
}

/// A second view of another concept.
const fn second(
    key: &'static str,
    label: &'static str,
    kind: Kind,
    of: &'static str,
    tags: &'static [&'static str],
) -> Concept {
    let concept = one(key, label, kind, Money, tags);
    Concept { unless_equal_to: Some(of), ..concept }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn keys_and_labels_are_distinct_and_references_exist() {
        let keys: HashSet<_> = TABLE.iter().map(|concept| concept.key).collect();
        let labels: HashSet<_> = TABLE.iter().map(|concept| concept.label).collect();
        assert_eq!((keys.len(), labels.len()), (TABLE.len(), TABLE.len()));
        let named = ANCHORS.iter().chain(&USABLE).chain(TABLE.iter().filter_map(|c| c.unless_equal_to.as_ref()));
        for key in named {
            assert!(keys.contains(key), "{key}");
        }
    }

    #[test]
    fn tags_have_a_taxonomy_and_a_name_can_stand_for_one_concept_only() {
        let mut owners = HashSet::new();
        for concept in TABLE {
            for tag in concept.tags {
                assert!(tag.starts_with("us-gaap:") || tag.starts_with("ifrs-full:"), "{tag}");
                assert!(owners.insert(*tag) || concept.unless_equal_to.is_some(), "{tag} twice");
            }
        }
    }
}
