//! Colours of the terminal.

use std::env;
use std::io::{self, IsTerminal};

use clap::ValueEnum;

/// When to colour the output.
#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set or TERM is dumb
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// What is coloured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Paint {
    /// Names of fields.
    Name,
    /// The head of a table.
    Head,
    /// Bars.
    Bar,
    /// Words of a level that asks for attention.
    Alarm,
    /// Words of a level that warns.
    Warning,
}

const RESET: &str = "\u{1b}[0m";

/// Colours, or the lack of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Palette {
    on: bool,
}

impl Palette {
    /// As asked, looking at the standard output and the environment for [`ColorChoice::Auto`].
    pub(crate) fn new(choice: ColorChoice) -> Palette {
        let set = |name: &str| env::var_os(name).is_some_and(|v| !v.is_empty());
        let on = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                let dumb = env::var_os("TERM").is_some_and(|t| t == "dumb");
                io::stdout().is_terminal() && !set("NO_COLOR") && !dumb
            }
        };
        Palette { on }
    }

    /// Whether anything is coloured.
    pub(crate) fn is_on(self) -> bool {
        self.on
    }

    /// A text in its colour.
    pub(crate) fn paint(self, paint: Paint, text: &str) -> String {
        if !self.on || text.is_empty() {
            return text.to_owned();
        }
        let code = match paint {
            Paint::Name => "36",
            Paint::Head => "1",
            Paint::Bar => "34",
            Paint::Alarm => "31",
            Paint::Warning => "33",
        };
        format!("\u{1b}[{code}m{text}{RESET}")
    }

    /// The value of a field; levels stand out.
    pub(crate) fn value(self, text: &str) -> String {
        match level(text) {
            Some(paint) => self.paint(paint, text),
            None => text.to_owned(),
        }
    }
}

/// The colour of a level.
fn level(text: &str) -> Option<Paint> {
    let is = |words: &[&str]| words.iter().any(|w| text.trim().eq_ignore_ascii_case(w));
    if is(&["error", "err", "fatal", "critical", "crit", "alert", "emerg", "panic"]) {
        Some(Paint::Alarm)
    } else if is(&["warn", "warning"]) {
        Some(Paint::Warning)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_only_when_on() {
        assert_eq!(Palette::new(ColorChoice::Never).paint(Paint::Bar, "x"), "x");
        let on = Palette::new(ColorChoice::Always);
        assert_eq!(on.paint(Paint::Bar, "x"), "\u{1b}[34mx\u{1b}[0m");
        assert_eq!(on.value("WARN"), "\u{1b}[33mWARN\u{1b}[0m");
        assert_eq!(on.value("warned"), "warned");
        assert!(!Palette::new(ColorChoice::Never).is_on());
    }
}
