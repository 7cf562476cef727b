//! Random syntax trees for property tests, over a small vocabulary so that they match something.
//!
//! Every tree is one that the parser can make: printing and parsing gives it back.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Union;

use super::ast::*;
use super::regex::Regex;

/// The field names and values that random trees use.
#[derive(Debug, Clone)]
pub(crate) struct Vocabulary {
    /// Names of fields, also of stream labels.
    pub(crate) fields: Vec<String>,
    /// Words, values and phrases.
    pub(crate) words: Vec<String>,
}

impl Vocabulary {
    /// From literals.
    pub(crate) fn new(fields: &[&str], words: &[&str]) -> Vocabulary {
        let owned = |list: &[&str]| list.iter().map(|&s| s.to_owned()).collect();
        Vocabulary { fields: owned(fields), words: owned(words) }
    }

    fn field(&self) -> impl Strategy<Value = String> + use<> {
        select(self.fields.clone())
    }

    /// A field whose name can stand in a placeholder.
    fn plain_field(&self) -> impl Strategy<Value = String> + use<> {
        let plain = |name: &&String| {
            name.starts_with(|c: char| c.is_alphanumeric())
                && name.chars().all(super::lexer::is_word_char)
        };
        let mut names: Vec<String> = self.fields.iter().filter(plain).cloned().collect();
        names.push(MESSAGE_FIELD.to_owned());
        select(names)
    }

    fn word(&self) -> impl Strategy<Value = String> + use<> {
        select(self.words.clone())
    }

    fn words(&self) -> impl Strategy<Value = Vec<String>> + use<> {
        vec(self.word(), 0..4)
    }

    fn fields(&self) -> impl Strategy<Value = Vec<String>> + use<> {
        vec(self.field(), 1..3)
    }

    /// The start of a field name, perhaps empty.
    fn prefix(&self) -> impl Strategy<Value = String> + use<> {
        (self.field(), 0usize..3).prop_map(|(name, len)| name.chars().take(len).collect())
    }

    fn pattern(&self) -> BoxedStrategy<FieldPattern> {
        prop_oneof![
            4 => self.field().prop_map(FieldPattern::Name),
            1 => self.prefix().prop_map(FieldPattern::Prefix),
        ]
        .boxed()
    }

    fn patterns(&self) -> BoxedStrategy<Vec<FieldPattern>> {
        vec(self.pattern(), 1..3)
            .prop_map(|list| {
                let all = list.iter().any(FieldPattern::is_all);
                if all { vec![FieldPattern::all()] } else { list }
            })
            .boxed()
    }
}

fn number() -> impl Strategy<Value = Number> {
    select(vec!["0", "1", "-1", "2.5", "100", "1KiB", "1ms", "5m", "1e3", "0x10", "-0.25"])
        .prop_map(|text| Number { text: text.to_owned() })
}

fn duration() -> impl Strategy<Value = Duration> {
    select(vec![("1ms", 1_000_000), ("5m", 300_000_000_000), ("1h30m", 5_400_000_000_000)])
        .prop_map(|(text, nanos)| Duration { text: text.to_owned(), nanos })
}

fn regex(v: &Vocabulary) -> impl Strategy<Value = Regex> + use<> {
    (v.word(), 0..5u8).prop_map(|(word, shape)| {
        let word = regex_syntax::escape(&word);
        let source = match shape {
            0 => word,
            1 => format!("^{word}"),
            2 => format!("{word}$"),
            3 => format!("(?i){word}"),
            _ => format!("{word}|[0-9]+"),
        };
        Regex::new(&source).unwrap()
    })
}

fn value_set(v: &Vocabulary) -> impl Strategy<Value = ValueSet> + use<> {
    prop_oneof![
        1 => Just(ValueSet::Any),
        9 => v.words().prop_map(|words| match words.as_slice() {
            [star] if star == "*" => ValueSet::Any,
            _ => ValueSet::List(words),
        }),
    ]
}

fn compare_op() -> impl Strategy<Value = CompareOp> {
    select(vec![
        CompareOp::Greater,
        CompareOp::GreaterOrEqual,
        CompareOp::Less,
        CompareOp::LessOrEqual,
    ])
}

/// A predicate without a subquery.
pub(crate) fn predicates(v: &Vocabulary) -> BoxedStrategy<Predicate> {
    let word = || v.word();
    let bound =
        || (number(), any::<bool>()).prop_map(|(value, inclusive)| RangeBound { value, inclusive });
    let fold = select(vec![FieldOp::Equal, FieldOp::LessOrEqual, FieldOp::Less]);
    let prefix = |text: String| {
        if text.is_empty() { Predicate::Any } else { Predicate::Prefix(text) }
    };
    prop_oneof![
        6 => word().prop_map(Predicate::Phrase),
        2 => word().prop_map(prefix),
        1 => Just(Predicate::Any),
        2 => word().prop_map(Predicate::Substring),
        2 => word().prop_map(Predicate::PhraseFold),
        1 => word().prop_map(Predicate::PrefixFold),
        4 => word().prop_map(Predicate::Exact),
        2 => word().prop_map(Predicate::ExactPrefix),
        3 => value_set(v).prop_map(Predicate::In),
        1 => value_set(v).prop_map(Predicate::ContainsAll),
        1 => value_set(v).prop_map(Predicate::ContainsAny),
        1 => v.words().prop_map(Predicate::Sequence),
        2 => regex(v).prop_map(Predicate::Regex),
        2 => (compare_op(), word()).prop_map(|(op, value)| Predicate::Compare { op, value }),
        2 => (compare_op(), number())
            .prop_map(|(op, n)| Predicate::Compare { op, value: n.text }),
        2 => (bound(), bound()).prop_map(|(min, max)| Predicate::Range { min, max }),
        1 => (word(), word()).prop_map(|(min, max)| Predicate::StringRange { min, max }),
        1 => (0..5u64, prop_oneof![0..9u64, Just(u64::MAX)])
            .prop_map(|(min, max)| Predicate::LenRange { min, max }),
        1 => (any::<u32>(), any::<u32>())
            .prop_map(|(min, max)| Predicate::Ipv4Range { min, max }),
        1 => (any::<u128>(), any::<u128>())
            .prop_map(|(min, max)| Predicate::Ipv6Range { min, max }),
        1 => (fold, v.field()).prop_map(|(op, other)| Predicate::CompareField { op, other }),
        1 => v.words().prop_map(Predicate::EqualsCommonCase),
        1 => v.words().prop_map(Predicate::ContainsCommonCase),
        1 => v.words().prop_map(Predicate::JsonArrayContainsAny),
    ]
    .boxed()
}

fn stream_selector(v: &Vocabulary) -> impl Strategy<Value = Filter> + use<> {
    let op = prop_oneof![
        v.word().prop_map(LabelOp::Equal),
        v.word().prop_map(LabelOp::NotEqual),
        v.words().prop_map(LabelOp::In),
        v.words().prop_map(LabelOp::NotIn),
        v.word().prop_map(|word| {
            LabelOp::Matches(
                Regex::anchored(&format!("{}.*", regex_syntax::escape(&word))).unwrap(),
            )
        }),
    ];
    let label = (v.field(), op).prop_map(|(label, op)| LabelFilter { label, op });
    vec(vec(label, 1..3), 0..3)
        .prop_map(|alternatives| Filter::Stream(StreamSelector { alternatives }))
}

fn time_filter() -> impl Strategy<Value = Filter> {
    let text = select(vec!["2024", "2024-03", "2024-03-05Z", "2024-03-05T10:20:30.5Z"])
        .prop_map(|text| TimePoint::Text(text.to_owned()));
    let point = prop_oneof![
        3 => text,
        1 => Just(TimePoint::Now),
        1 => duration().prop_map(TimePoint::BeforeNow),
    ]
    .boxed();
    let at = point.clone().prop_filter_map("an age is another form", |point| match point {
        TimePoint::BeforeNow(_) => None,
        point => Some(TimeForm::At(point)),
    });
    let form = prop_oneof![
        duration().prop_map(TimeForm::Last),
        duration().prop_map(TimeForm::OlderThan),
        at,
        (compare_op(), point.clone()).prop_map(|(op, point)| TimeForm::Compare { op, point }),
        (point.clone(), any::<bool>(), point, any::<bool>()).prop_map(
            |(min, min_inclusive, max, max_inclusive)| TimeForm::Range {
                min,
                min_inclusive,
                max,
                max_inclusive
            }
        ),
    ];
    (form, option::of(duration()))
        .prop_map(|(form, offset)| Filter::Time(TimeFilter { form, offset }))
}

fn field_filter(v: &Vocabulary) -> impl Strategy<Value = Filter> + use<> {
    let message = Just(FieldPattern::Name(MESSAGE_FIELD.to_owned()));
    (prop_oneof![1 => message, 3 => v.pattern()], predicates(v))
        .prop_map(|(field, predicate)| Filter::Field { field, predicate })
}

/// A filter without subqueries.
pub(crate) fn filters(v: &Vocabulary) -> BoxedStrategy<Filter> {
    let leaf = prop_oneof![
        12 => field_filter(v),
        1 => stream_selector(v),
        1 => time_filter(),
        1 => Just(Filter::All),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 1..4).prop_map(Filter::and),
            vec(inner.clone(), 1..4).prop_map(Filter::or),
            inner.prop_map(|filter| !filter),
        ]
    })
    .boxed()
}

fn stats_function(v: &Vocabulary) -> BoxedStrategy<StatsFunction> {
    use StatsFunction as F;
    let limit = || option::of(1..5u64);
    prop_oneof![
        v.patterns().prop_map(F::Count),
        v.patterns().prop_map(F::CountEmpty),
        (v.fields(), limit()).prop_map(|(fields, limit)| F::CountUniq { fields, limit }),
        v.patterns().prop_map(F::Sum),
        v.patterns().prop_map(F::Avg),
        v.patterns().prop_map(F::Min),
        v.patterns().prop_map(F::Max),
        v.patterns().prop_map(F::SumLen),
        v.patterns().prop_map(F::Median),
        v.patterns().prop_map(F::Stddev),
        (v.patterns(), limit()).prop_map(|(fields, limit)| F::UniqValues { fields, limit }),
        (v.patterns(), limit()).prop_map(|(fields, limit)| F::Values { fields, limit }),
        (v.field(), v.patterns()).prop_map(|(source, fields)| F::RowMax { source, fields }),
        (v.field(), v.patterns()).prop_map(|(source, fields)| F::RowMin { source, fields }),
        (v.field(), v.field()).prop_map(|(source, field)| F::FieldMax { source, field }),
        v.field().prop_map(F::Histogram),
        (select(vec!["0", "0.5", "0.99", "1"]), v.patterns()).prop_map(|(phi, fields)| {
            F::Quantile { phi: Number { text: phi.to_owned() }, fields }
        }),
    ]
    .boxed()
}

fn stats(v: &Vocabulary) -> impl Strategy<Value = Pipe> + use<> {
    let bucket = option::weighted(
        0.2,
        select(vec!["10", "1h", "2.5"]).prop_map(|step| Bucket {
            step: BucketStep::Number(Number { text: step.to_owned() }),
            offset: None,
        }),
    );
    let key = (v.field(), bucket).prop_map(|(field, bucket)| GroupKey { field, bucket });
    let item = (stats_function(v), option::weighted(0.2, filters(v)));
    (vec(key, 0..3), vec(item, 1..4)).prop_map(|(by, items)| {
        let numbered = items.into_iter().enumerate();
        let items = numbered
            .map(|(i, (function, condition))| StatsItem {
                function,
                condition,
                result: format!("result {i}"),
            })
            .collect();
        Pipe::Stats { by, items }
    })
}

fn sort(v: &Vocabulary) -> impl Strategy<Value = Pipe> + use<> {
    let key = (v.field(), any::<bool>()).prop_map(|(field, desc)| SortKey { field, desc });
    let rank = option::weighted(0.2, Just("position".to_owned()));
    (vec(key, 1..3), option::of(0..9u64), option::of(0..9u64), rank).prop_map(
        |(keys, offset, limit, rank)| {
            Pipe::Sort(Sort { keys, desc: false, partition_by: Vec::new(), offset, limit, rank })
        },
    )
}

fn rename_pairs(v: &Vocabulary) -> impl Strategy<Value = Vec<RenamePair>> + use<> {
    let names =
        (v.field(), v.field()).prop_map(|(a, b)| (FieldPattern::Name(a), FieldPattern::Name(b)));
    let prefixes = (v.prefix(), v.prefix())
        .prop_map(|(a, b)| (FieldPattern::Prefix(a), FieldPattern::Prefix(b)));
    let pair = prop_oneof![names, prefixes];
    vec(pair.prop_map(|(source, target)| RenamePair { source, target }), 1..3)
}

fn math(v: &Vocabulary) -> impl Strategy<Value = Pipe> + use<> {
    let field = v.field().prop_map(MathExpr::Field);
    let leaf = prop_oneof![field, number().prop_map(MathExpr::Number)];
    let op = select(vec![
        MathOp::Power,
        MathOp::Multiply,
        MathOp::Divide,
        MathOp::Remainder,
        MathOp::Add,
        MathOp::Subtract,
        MathOp::BitAnd,
        MathOp::BitXor,
        MathOp::BitOr,
        MathOp::Default,
    ]);
    let expr = leaf.prop_recursive(4, 16, 3, move |inner| {
        let binary = (op.clone(), inner.clone(), inner.clone()).prop_map(|(op, left, right)| {
            MathExpr::Binary { op, left: Box::new(left), right: Box::new(right) }
        });
        let call = vec(inner.clone(), 1..3)
            .prop_map(|args| MathExpr::Call { function: MathFunction::Max, args });
        prop_oneof![4 => binary, 1 => inner.prop_map(negate), 1 => call]
    });
    (expr, v.field())
        .prop_map(|(expr, result)| Pipe::Math(Math { items: vec![MathItem { expr, result }] }))
}

/// A negated constant is a constant to the parser.
fn negate(expr: MathExpr) -> MathExpr {
    match expr {
        MathExpr::Number(number) => MathExpr::Number(number),
        other => MathExpr::Negate(Box::new(other)),
    }
}

/// A pipe whose answer is fixed by its input, without subqueries.
pub(crate) fn pipes(v: &Vocabulary) -> BoxedStrategy<Pipe> {
    let keep = select(vec![KeepMode::Overwrite, KeepMode::KeepOriginal, KeepMode::SkipEmpty]);
    let condition = || option::weighted(0.3, filters(v));
    let uniq = (v.fields(), any::<bool>()).prop_map(|(by, hits)| {
        let mut name = "hits".to_owned();
        while by.contains(&name) {
            name.push('s');
        }
        Pipe::Uniq(Uniq { by, hits: hits.then_some(name), limit: None })
    });
    let format = (condition(), v.plain_field(), v.field(), keep).prop_map(
        |(condition, field, result, keep)| {
            let part =
                FormatPart::Field { field: Some(field.clone()), encoding: FormatEncoding::Plain };
            let parts = vec![FormatPart::Literal("v=".to_owned()), part];
            let pattern = FormatPattern { source: format!("v=<{field}>"), parts };
            Pipe::Format(Format { condition, pattern, result, keep })
        },
    );
    let replace = (condition(), v.word(), v.word(), v.field(), option::of(1..3u64)).prop_map(
        |(condition, old, new, field, limit)| {
            Pipe::Replace(Replace { condition, old, new, field, limit })
        },
    );
    let pack = (v.patterns(), v.field(), any::<bool>()).prop_map(|(fields, result, json)| {
        let format = if json { PackFormat::Json } else { PackFormat::Logfmt };
        Pipe::Pack(Pack { format, fields, result })
    });
    let coalesce = (vec(v.pattern(), 1..3), v.word(), v.field())
        .prop_map(|(fields, default, result)| Pipe::Coalesce { fields, default, result });
    let choices: Vec<(u32, BoxedStrategy<Pipe>)> = vec![
        (3, vec(v.pattern(), 1..3).prop_map(Pipe::Fields).boxed()),
        (2, vec(v.pattern(), 1..3).prop_map(Pipe::Delete).boxed()),
        (2, rename_pairs(v).prop_map(Pipe::Rename).boxed()),
        (2, rename_pairs(v).prop_map(Pipe::Copy).boxed()),
        (3, filters(v).prop_map(Pipe::Filter).boxed()),
        (3, sort(v).boxed()),
        (4, stats(v).boxed()),
        (2, uniq.boxed()),
        (1, (0..9u64).prop_map(Pipe::Limit).boxed()),
        (1, (0..9u64).prop_map(Pipe::Offset).boxed()),
        (2, math(v).boxed()),
        (2, format.boxed()),
        (2, replace.boxed()),
        (1, pack.boxed()),
        (1, coalesce.boxed()),
        (1, (v.field(), v.field()).prop_map(|(field, result)| Pipe::Len { field, result }).boxed()),
        (
            1,
            (v.field(), v.field()).prop_map(|(field, result)| Pipe::Hash { field, result }).boxed(),
        ),
        (1, Just(Pipe::FieldNames { filter: None, result: "name".to_owned() }).boxed()),
        (1, Just(Pipe::DropEmptyFields).boxed()),
    ];
    Union::new_weighted(choices).boxed()
}

/// A query with up to three pipes, and sometimes a subquery.
pub(crate) fn queries(v: &Vocabulary) -> BoxedStrategy<Query> {
    let plain = (filters(v), vec(pipes(v), 0..4)).prop_map(|(filter, pipes)| Query {
        options: QueryOptions::default(),
        filter,
        pipes,
    });
    let subquery = (filters(v), v.field(), v.field()).prop_map(|(filter, outer, field)| {
        let fields = vec![FieldPattern::Name(field.clone())];
        let query =
            Query { options: QueryOptions::default(), filter, pipes: vec![Pipe::Fields(fields)] };
        let set = ValueSet::Query { query: Box::new(query), field };
        Filter::Field { field: FieldPattern::Name(outer), predicate: Predicate::In(set) }
    });
    (plain, option::weighted(0.2, subquery))
        .prop_map(|(mut query, subquery)| {
            if let Some(subquery) = subquery {
                query.filter = Filter::and([subquery, query.filter]);
            }
            query
        })
        .boxed()
}
