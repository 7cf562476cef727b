//! Nothing of the syntax tree lacks a maker.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use super::{field, fields_with_prefix, message};
use crate::query::ast::*;
use crate::record::{StreamId, Timestamp};

/// A function that names the variant of a value, and the names of all variants. A variant that is
/// missing here does not compile, one that nothing makes fails the test.
macro_rules! variants {
    ($function:ident, $all:ident, $kind:ident: $($name:ident)+) => {
        fn $function(value: &$kind) -> &'static str {
            match value {
                $($kind::$name { .. } => stringify!($name),)+
            }
        }
        const $all: &[&str] = &[$(stringify!($name)),+];
    };
}

variants!(pipe_name, PIPES, Pipe:
    BlockStats BlocksCount Coalesce CollapseNums Copy Decolorize Delete DropEmptyFields Extract
    ExtractRegexp Facets FieldNames FieldValues Fields Filter Format GenerateSequence Hash Join
    JsonArrayConcat JsonArrayLen Len Limit Math Offset Pack Patterns QueryStats Rename Replace
    ReplaceRegexp RunningStats Sample SetStreamFields Sort Split Stats StreamContext TimeAdd Top
    TotalStats Union Uniq Unpack UnpackWords Unroll);
variants!(filter_name, FILTERS, Filter:
    All And Or Not Field Stream StreamId Time DayRange WeekRange);
variants!(predicate_name, PREDICATES, Predicate:
    Any Phrase Prefix Substring PhraseFold PrefixFold Exact ExactPrefix In ContainsAll ContainsAny
    Sequence Regex Compare Range StringRange LenRange Ipv4Range Ipv6Range CompareField ValueType
    PatternMatch EqualsCommonCase ContainsCommonCase JsonArrayContainsAny);
variants!(stats_name, STATS, StatsFunction:
    Any Avg Count CountEmpty CountUniq CountUniqHash FieldMax FieldMin Histogram JsonValues Max
    Median Min Quantile Rate RateSum RowAny RowMax RowMin Stddev Sum SumLen UniqValues Values);
variants!(running_name, RUNNING, RunningFunction: Count Sum Min Max First Last);
variants!(math_name, MATH, MathExpr: Number Field Negate Binary Call);
variants!(operation_name, OPERATIONS, MathOp:
    Power Multiply Divide Remainder Add Subtract BitAnd BitXor BitOr Default);

/// All names, and no other.
fn all_made<'a>(names: impl IntoIterator<Item = &'a str>, all: &[&'a str]) {
    let made: BTreeSet<&str> = names.into_iter().collect();
    assert_eq!(made, all.iter().copied().collect());
}

/// Each query prints as a text that parses to it.
fn comes_back(query: Query) -> Query {
    let text = query.to_string();
    assert_eq!(text.parse::<Query>().as_ref(), Ok(&query), "{text}");
    query
}

#[test]
fn every_filter_has_a_maker() {
    let f = || field("f g");
    let v4 = |d| Ipv4Addr::new(10, 0, 0, d);
    let sub = || Query::new(Filter::word("x"));
    let hour = |h: u64| Duration::from_secs(3_600 * h);
    let id = StreamId::parse("0123456789abcdef0123456789abcdef").unwrap();
    let filters = [
        f().any(),
        f().empty(),
        f().word("a"),
        fields_with_prefix("k8s.").prefix("a b"),
        fields_with_prefix("").substring("|"),
        f().word_in_any_case("A"),
        f().prefix_in_any_case("A"),
        f().eq("x"),
        f().starts_with("x"),
        f().one_of(["a", "*"]),
        f().in_query(sub(), "h i"),
        f().contains_all(["a"]),
        f().contains_all_of_query(sub(), "h"),
        f().contains_any(["a"]),
        f().contains_any_of_query(sub(), "h"),
        f().sequence(["a", "b"]),
        f().matches("a|b").unwrap(),
        f().greater_than("5"),
        f().at_most("x y"),
        f().number_range(-1.5..=f64::INFINITY),
        f().string_range("a", "b"),
        f().len_range(0..=5),
        f().ipv4_range(v4(0), v4(9)),
        f().ipv6_range(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST),
        f().eq_field("x"),
        f().value_type("dict"),
        message().pattern_match("took <N>ms", MatchAnchor::End),
        f().equals_common_case(["Error"]),
        f().contains_common_case(["Error"]),
        f().json_array_contains_any(["a"]),
        Filter::All,
        f().any() & !message().word("y"),
        f().any() | message().word("y"),
        !f().word("y"),
        Filter::stream("a b", "x"),
        Filter::stream_in("a", ["x", "y"]),
        Filter::stream_matches("a", "x|y").unwrap(),
        Filter::stream_ids([id]),
        Filter::streams_of(sub()),
        Filter::last(hour(1)),
        Filter::between(Timestamp::from_nanos(0), Timestamp::from_nanos(5)),
        Filter::day_range(hour(8)..hour(18)),
        Filter::week_range(Weekday::Monday..=Weekday::Friday),
    ];
    let filters = filters.map(|filter| comes_back(Query::new(filter)).filter);
    all_made(filters.iter().map(filter_name), FILTERS);
    let predicates = filters.iter().filter_map(|filter| match filter {
        Filter::Field { predicate, .. } => Some(predicate_name(predicate)),
        _ => None,
    });
    all_made(predicates, PREDICATES);
}

#[test]
fn every_pipe_has_a_maker() {
    let all = || Query::new(Filter::All);
    let only = || field("x").any();
    let rows = || RightSide::rows([[("a", "b c")], [("a", "")]]);
    let expression = MathExpr::field("a b").power(MathExpr::number(-2.0));
    let queries = [
        all().block_stats(),
        all().blocks_count("n"),
        all().coalesce(["a", "b c"], "", "r"),
        all().pipe(CollapseNums::new().prettify().from("f").only(only())),
        all().copy([("a", "b")]),
        all().decolorize("f"),
        all().delete(["a"]),
        all().drop_empty_fields(),
        all().pipe(Extract::new("a<b>").unwrap().keep(KeepMode::SkipEmpty).only(only())),
        all().pipe(ExtractRegexp::new("(?P<a>.)").unwrap().from("f")),
        all().pipe(Facets::new(5).max_value_len(9).max_values_per_field(7).keep_const_fields()),
        all().field_names(),
        all().field_values("a b"),
        all().fields(["a"]),
        all().filter(only()),
        all().pipe(Format::new("<q:a> &lt;", "r").unwrap().only(only())),
        all().generate_sequence(0),
        all().hash("a", "b"),
        all().pipe(Join::new(["k"], RightSide::query(all())).inner().prefix("p.")),
        all().json_array_concat(", ", "a", "b"),
        all().json_array_len("a", "b"),
        all().len_of("a", "b"),
        all().limit(1),
        all().offset(1),
        all().pipe(Math::new([expression.named("r")])),
        all().pipe(Pack::json("r").fields(["a"])),
        all().pipe(Pack::logfmt("r")),
        all().pipe(Patterns::new(["app"]).new_since(Timestamp::from_nanos(0))),
        all().pipe(Patterns::new([""; 0]).new_against(only())),
        all().query_stats(),
        all().rename([("a", "b")]),
        all().pipe(Replace::new("a", "").from("f").limit(2).only(only())),
        all().pipe(ReplaceRegexp::new("a.", "$0").unwrap().from("f").limit(2)),
        all().running_stats(["a"], [RunningItem::count(), RunningItem::sum("b").named("s")]),
        all().sample(5),
        all().pipe(SetStreamFields::new(["a", "b"]).only(only())),
        all().sort_by(["a"]),
        all().pipe(Sort::by([SortKey::desc("a"), SortKey::asc("b")]).limit(3).offset(1).rank("r")),
        all().pipe(Sort::by([SortKey::asc("a")]).partition_by(["b"]).limit(1)),
        all().split(",", "a", "b"),
        all().stats([GroupKey::calendar(CalendarUnit::Week)], [StatsItem::count()]),
        all().stats([GroupKey::time(Duration::from_secs(60)), "a b".into()], [StatsItem::rate()]),
        all().stats([GroupKey::buckets("ip", BucketStep::Ipv4Network(8))], [StatsItem::count()]),
        all().pipe(StreamContext::new(1, 2).time_window(Duration::from_secs(1))),
        all().time_add(-5, "_time"),
        all().pipe(Top::new(3, ["a"]).hits("h").rank("r")),
        all().total_stats([""; 0], [RunningItem::max("a")]),
        all().union(RightSide::query(all().limit(1))),
        all().union(rows()),
        all().pipe(Uniq::by(["a"]).with_hits().limit(5)),
        all().pipe(Unpack::json().from("f").fields(["a"]).result_prefix("p ").only(only())),
        all().pipe(Unpack::logfmt().keep(KeepMode::KeepOriginal)),
        all().pipe(Unpack::syslog()),
        all().pipe(UnpackWords::new("w").from("f").drop_duplicates()),
        all().pipe(Unroll::by(["a"]).only(only())),
    ];
    let queries = queries.map(comes_back);
    all_made(queries.iter().flat_map(|q| &q.pipes).map(pipe_name), PIPES);
}

#[test]
fn every_function_has_a_maker() {
    let items = [
        StatsItem::any("a"),
        StatsItem::avg("a"),
        StatsItem::count(),
        StatsItem::count_of(["a", "b c"]),
        StatsItem::count_empty(["a"]),
        StatsItem::count_uniq(["a"]),
        StatsItem::count_uniq_hash(["a"]),
        StatsItem::field_max("a", "b"),
        StatsItem::field_min("a", "b"),
        StatsItem::histogram("a"),
        StatsItem::json_values(["a"], [SortKey::desc("b")]),
        StatsItem::max("a"),
        StatsItem::median("a"),
        StatsItem::min("a"),
        StatsItem::quantile(0.5, "a"),
        StatsItem::rate(),
        StatsItem::rate_sum("a"),
        StatsItem::row_any(["a"]),
        StatsItem::row_max("a", ["b"]),
        StatsItem::row_min("a", [""; 0]),
        StatsItem::stddev("a"),
        StatsItem::sum("a"),
        StatsItem::sum_len("a"),
        StatsItem::uniq_values("a"),
        StatsItem::values("a").only(field("x").any()),
    ];
    all_made(items.iter().map(|item| stats_name(&item.function)), STATS);
    let running = [
        RunningItem::count(),
        RunningItem::sum("a"),
        RunningItem::min("a"),
        RunningItem::max("a"),
        RunningItem::first("a", 0),
        RunningItem::last("a", 2),
    ];
    all_made(running.iter().map(|item| running_name(&item.function)), RUNNING);
    comes_back(Query::new(Filter::All).stats(["k"], items).running_stats(["k"], running));
}

#[test]
fn every_expression_has_a_maker() {
    let (a, b) = (|| MathExpr::field("a"), || MathExpr::number(0.5));
    let expressions = [
        a() + b(),
        a() - b(),
        a() * b(),
        a() / b(),
        a() % b(),
        a() & b(),
        a() | b(),
        a() ^ b(),
        a().power(b()),
        a().or_default(b()),
    ];
    let operation = |e: &MathExpr| match e {
        MathExpr::Binary { op, .. } => operation_name(op),
        _ => "",
    };
    all_made(expressions.iter().map(operation), OPERATIONS);
    let others = [
        a(),
        -a(),
        MathExpr::number(f64::NAN),
        MathExpr::number(f64::NEG_INFINITY),
        MathExpr::number(-3.5),
        MathExpr::call(MathFunction::Max, [a() + b() * -a(), b()]),
    ];
    let all: Vec<MathExpr> = expressions.into_iter().chain(others).collect();
    all_made(all.iter().map(math_name), MATH);
    let items = all.into_iter().zip(0..).map(|(e, i)| e.named(format!("r{i}")));
    comes_back(Query::new(Filter::All).pipe(Math::new(items)));
}
