//! What log tools ask.

use super::*;
use crate::options::QueryOptions;
use crate::query::Query;
use crate::store::HitsSeries;

const SECOND: i64 = 1_000_000_000;

/// Three layouts of the same rows: one row a second for 100 seconds, every third of `db`, the
/// time of the last ten the same.
fn stores() -> Vec<Store> {
    ["buffer", "files", "merged"]
        .map(|layout| {
            let disk = Arc::new(SimDisk::new());
            let store = options(&disk, Durability::Process).open(root()).unwrap();
            let ingest = ingest(&store);
            for n in 0..100_i64 {
                let mut batch = Batch::new();
                let app = if n % 3 == 0 { "db" } else { "web" };
                let time = Timestamp::from_nanos(n.min(90) * SECOND + 5);
                batch.entry().time(time).field("app", app).field("n", n).message("tick");
                ingest.append_batch(batch).unwrap();
                if layout != "buffer" && n % 17 == 0 {
                    store.flush().unwrap();
                }
            }
            if layout == "merged" {
                store.compact().unwrap();
            }
            store
        })
        .into()
}

fn query(text: &str) -> Query {
    text.parse().unwrap()
}

fn numbers(rows: &[crate::Row]) -> Vec<i64> {
    rows.iter().map(|r| r.get("n").parse().unwrap()).collect()
}

#[test]
fn hits_are_filled_over_the_range_that_is_asked() {
    let ask = QueryOptions::new().now(Timestamp::from_nanos(200 * SECOND));
    for store in stores() {
        let hits = |text: &str, step: i64, by: Option<&str>| {
            let step = Duration::from_nanos(step.unsigned_abs());
            store.hits(&query(text), step, by, &ask).unwrap().series
        };
        let counts = |s: &HitsSeries| s.buckets.iter().map(|b| b.1).collect::<Vec<_>>();
        let all = hits("*", 30 * SECOND, None);
        assert_eq!(counts(&all[0]), [30, 30, 30, 10]);
        assert_eq!(all[0].buckets[1].0, Timestamp::from_nanos(30 * SECOND));
        // 20 s up to, but not including, 140 s.
        let asked = hits("_time:3m offset 0s _time:<1970-01-01T00:02:20Z", 30 * SECOND, None);
        assert_eq!(counts(&asked[0]), [10, 30, 30, 10, 0]);
        let apps =
            hits("_time:[1970-01-01T00:00:00Z, 1970-01-01T00:02:00Z)", 60 * SECOND, Some("app"));
        let named: Vec<_> = apps.iter().map(|s| (s.value.as_str(), s.total, counts(s))).collect();
        assert_eq!(named, [("web", 66, vec![40, 26]), ("db", 34, vec![20, 14])]);
        assert_eq!(counts(&hits("_time:2m nothing", 60 * SECOND, None)[0]), [0, 0, 0]);
        assert!(hits("nothing", SECOND, Some("app")).is_empty());
        assert!(hits("nothing", SECOND, None)[0].buckets.is_empty());
        // Pipes are honoured, rows that they add too.
        let added = hits("nothing | union (n:=3)", SECOND, None);
        assert_eq!(added[0].total, 1);
        let ranges = hits("n:<5 | fields _time, app", 30 * SECOND, Some("hits"));
        assert_eq!((ranges[0].value.as_str(), ranges[0].total), ("", 5));
        let refused = |step| store.hits(&query("_time:3m"), step, None, &ask).unwrap_err();
        for step in [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(u64::MAX)] {
            assert!(matches!(refused(step), Error::InvalidOption { name: "step", .. }));
        }
    }
}

#[test]
fn names_values_and_streams_with_their_rows() {
    for store in stores() {
        let pairs = |list: Vec<crate::ValueHits>| -> Vec<(String, u64)> {
            list.into_iter().map(|v| (v.value, v.hits)).collect()
        };
        let all = QueryOptions::new();
        let names = pairs(store.field_names(&query("n:<10"), &all).unwrap());
        assert!(names.contains(&("n".to_owned(), 10)), "{names:?}");
        assert!(names.contains(&("_time".to_owned(), 10)), "{names:?}");
        let apps = pairs(store.field_values(&query("*"), "app", 5, &all).unwrap());
        assert_eq!(apps, [("web".to_owned(), 66), ("db".to_owned(), 34)]);
        let one = pairs(store.field_values(&query("*"), "app", 1, &all).unwrap());
        assert_eq!(one, apps[..1]);
        let none = pairs(store.field_values(&query("*"), "hits", 5, &all).unwrap());
        assert_eq!(none, [(String::new(), 100)]);
        let streams = pairs(store.streams(&query("n:<3"), 5, &all).unwrap());
        assert_eq!(streams, [("{app=\"web\"}".to_owned(), 2), ("{app=\"db\"}".to_owned(), 1)]);
        let ids = pairs(store.stream_ids(&query("*"), 5, &all).unwrap());
        let found = store.query(&format!("_stream_id:{} | stats count() n", ids[1].0));
        assert_eq!(found.unwrap().next().unwrap().unwrap().get("n"), "34");
    }
}

#[test]
fn tails_and_neighbours_keep_the_order_of_appending() {
    let all = QueryOptions::new();
    for store in stores() {
        let tail = store.tail(&query("app:=db"), 5, &all).unwrap();
        assert_eq!(numbers(&tail), [87, 90, 93, 96, 99]);
        assert!(store.tail(&query("*"), 0, &all).unwrap().is_empty());
        assert_eq!(store.tail(&query("*"), 1_000, &all).unwrap().len(), 100);
        let row = |text: &str| store.query(text).unwrap().next().unwrap().unwrap();
        let around = |text: &str, before, after, seconds| {
            let window = Duration::from_secs(seconds);
            numbers(&store.stream_context(&row(text), before, after, window, &all).unwrap())
        };
        assert_eq!(around("n:=30", 2, 1, 3_600), [24, 27, 30, 33]);
        assert_eq!(around("n:=0", 2, 2, 3_600), [0, 3, 6]);
        assert_eq!(around("n:=30", 9, 9, 6), [24, 27, 30, 33, 36]);
        assert_eq!(around("n:=93", 1, 5, 3_600), [87, 90, 93, 96, 99]);
        let bare = row("n:=30 | fields n");
        let refused = store.stream_context(&bare, 1, 1, Duration::from_secs(1), &all);
        assert!(matches!(refused, Err(Error::InvalidOption { name: "row", .. })));
    }
}
