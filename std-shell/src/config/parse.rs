//! The strict little grammars of values: words, whole numbers, file modes.

/// Words that mean yes, in any case.
const TRUE_WORDS: [&str; 6] = ["y", "yes", "on", "true", "enable", "1"];
/// Words that mean no, in any case. An empty value means no as well.
const FALSE_WORDS: [&str; 6] = ["n", "no", "off", "false", "disable", "0"];
/// Both lists, for a warning.
pub(super) const WORDS: &str = "y, yes, on, true, enable, 1 or n, no, off, false, disable, 0";

/// What a word says.
pub(super) fn yes_or_no(text: &str) -> Option<bool> {
    let is_one_of = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(text));
    if is_one_of(&TRUE_WORDS) {
        Some(true)
    } else if text.is_empty() || is_one_of(&FALSE_WORDS) {
        Some(false)
    } else {
        None
    }
}

/// Why a text is no number, as a warning says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberFault {
    Empty,
    NotANumber,
    TooLarge,
}

impl NumberFault {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            NumberFault::Empty => "it is empty",
            NumberFault::NotANumber => {
                "that is not a whole number (digits, or 0x and hexadecimal digits, nothing else)"
            }
            NumberFault::TooLarge => "that is too large",
        }
    }
}

/// Decimal digits, or `0x` and hexadecimal digits: no blanks, no sign, nothing behind.
pub(super) fn whole_number(text: &str) -> Result<u64, NumberFault> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if !digits.is_empty() => number_of(digits, 16),
        _ => number_of(text, 10),
    }
}

/// The permission bits of a file: octal digits as `chmod` takes them, `0o` before them or not.
pub(super) fn octal_number(text: &str) -> Result<u64, NumberFault> {
    match text.strip_prefix("0o") {
        Some(digits) if !digits.is_empty() => number_of(digits, 8),
        _ => number_of(text, 8),
    }
}

fn number_of(digits: &str, radix: u32) -> Result<u64, NumberFault> {
    if digits.is_empty() {
        return Err(NumberFault::Empty);
    }
    // The standard parser takes a sign; this one doesn't.
    if !digits.chars().all(|character| character.is_digit(radix)) {
        return Err(NumberFault::NotANumber);
    }
    u64::from_str_radix(digits, radix).map_err(|_| NumberFault::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_count_in_any_case_and_only_whole() {
        for word in ["y", "YES", "On", "tRuE", "enable", "1"] {
            assert_eq!(yes_or_no(word), Some(true), "{word}");
        }
        for word in ["", "n", "No", "OFF", "false", "Disable", "0"] {
            assert_eq!(yes_or_no(word), Some(false), "{word}");
        }
        for word in [" yes", "yes ", "ye", "2", "01", "enabled", "ja", "y\0"] {
            assert_eq!(yes_or_no(word), None, "{word}");
        }
    }

    #[test]
    fn numbers_are_digits_and_nothing_else() {
        for (text, value) in [("0", 0), ("0064", 64), ("0x40", 64), ("0XfF", 255), ("18446744073709551615", u64::MAX)] {
            assert_eq!(whole_number(text), Ok(value), "{text}");
        }
        for text in ["-1", "+1", "abc", " 1", "1 ", "1x", "1e3", "0x", "0x+1", "0xg", "1_000", "\u{0661}", "1.0"] {
            assert_eq!(whole_number(text), Err(NumberFault::NotANumber), "{text}");
        }
        assert_eq!(whole_number(""), Err(NumberFault::Empty));
        assert_eq!(whole_number("18446744073709551616"), Err(NumberFault::TooLarge));
        assert_eq!(whole_number("0x10000000000000000"), Err(NumberFault::TooLarge));
    }

    #[test]
    fn modes_are_octal() {
        for (text, value) in [("644", 0o644), ("0644", 0o644), ("0o600", 0o600), ("0", 0)] {
            assert_eq!(octal_number(text), Ok(value), "{text}");
        }
        for text in ["8", "0x1a4", "rw-r--r--", "-644", "0o"] {
            assert_eq!(octal_number(text), Err(NumberFault::NotANumber), "{text}");
        }
    }
}
