//! `json_array_contains_any`: scalar items of a JSON array.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::set::TextSet;

/// Whether `value` is a JSON array that has one of `wanted` among its scalar items: strings by
/// their content, everything else by its source text. Nested arrays and objects do not count.
pub(crate) fn contains_any(value: &[u8], wanted: &TextSet) -> bool {
    let trimmed = value.trim_ascii_start();
    if trimmed.first() != Some(&b'[') {
        return false;
    }
    let Ok(items) = serde_json::from_slice::<Vec<&RawValue>>(trimmed) else {
        return false;
    };
    items.iter().any(|item| {
        let source = item.get();
        match source.as_bytes().first() {
            Some(b'[' | b'{') | None => false,
            Some(b'"') => serde_json::from_str::<Cow<'_, str>>(source)
                .is_ok_and(|text| wanted.contains(text.as_bytes())),
            Some(_) => wanted.contains(source.as_bytes()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_at_scalars_of_the_outer_array() {
        let wanted = TextSet::new(["prod", "1.0", "true"].map(|s| s.as_bytes().to_vec()));
        let hit = |text: &str| contains_any(text.as_bytes(), &wanted);
        assert!(hit(r#" ["dev","prod"] "#));
        assert!(hit(r#"["pr\u006fd"]"#));
        assert!(hit("[1.0]"));
        assert!(hit("[null, true]"));
        assert!(!hit("[1]"));
        assert!(!hit(r#""prod""#));
        assert!(!hit(r#"[["prod"],{"a":"prod"}]"#));
        assert!(!hit(r#"["prod""#));
        assert!(!hit("[]"));
        assert!(!hit(""));
        assert!(!hit(&"[".repeat(100_000)));
    }
}
