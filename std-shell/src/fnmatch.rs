//! Shell-style name patterns: POSIX `fnmatch` with no flags, over bytes, in the C locale.
//!
//! NIXL hands its allowlist to the C library's `fnmatch(pattern, name, 0)`. The same list has to choose the
//! same events here, on every platform and in every locale, so the rules are spelled out in this file and
//! compared with the C library's in a test.

/// Whether a name as a whole fits a pattern.
///
/// | in the pattern | fits |
/// |---|---|
/// | `*` | any number of bytes, none too; `/` and a leading dot are nothing special |
/// | `?` | one byte |
/// | `[abc]`, `[a-z]`, `[[:digit:]]` | one byte of the set; `]` stands for itself when it comes first |
/// | `[!abc]`, `[^abc]` | one byte outside the set |
/// | `\` and a byte | that byte |
/// | anything else | itself; upper and lower case differ |
///
/// A bracket that is never closed is an ordinary `[`. A pattern that ends in a lone backslash, and a set that
/// names an unknown class, fit nothing. The time taken grows with the product of both lengths, never
/// exponentially with the number of stars.
///
/// ```
/// use telering::fnmatch;
/// assert!(fnmatch(b"agent_[rt]x_*", b"agent_tx_bytes"));
/// assert!(!fnmatch(b"agent_?x_bytes", b"agent_tx_bytes_total"));
/// ```
#[must_use]
pub fn fnmatch(pattern: &[u8], name: &[u8]) -> bool {
    let mut at = 0; // place in the pattern
    let mut seen = 0; // bytes of the name that fit so far
    // After the last star: where the pattern goes on, and how much of the name was seen. Only the last star
    // ever needs to grow: whatever an earlier one could give away, the last one can take.
    let mut star: Option<(usize, usize)> = None;
    loop {
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            star = Some((at, seen));
            continue;
        }
        if seen == name.len() && at == pattern.len() {
            return true;
        }
        if let Some(next) = name.get(seen).and_then(|byte| one(pattern, at, *byte)) {
            at = next;
            seen += 1;
            continue;
        }
        match star {
            Some((after, from)) if from < name.len() => {
                star = Some((after, from + 1));
                (at, seen) = (after, from + 1);
            }
            _ => return false,
        }
    }
}

/// Fits one byte with the pattern's element at `at`; gives the place after that element.
fn one(pattern: &[u8], at: usize, byte: u8) -> Option<usize> {
    match *pattern.get(at)? {
        b'?' => Some(at + 1),
        b'\\' => (*pattern.get(at + 1)? == byte).then_some(at + 2),
        b'[' => match bracket(pattern, at, byte) {
            Bracket::Fits(next) => Some(next),
            Bracket::Other => None,
            Bracket::Open => (byte == b'[').then_some(at + 1),
        },
        literal => (literal == byte).then_some(at + 1),
    }
}

enum Bracket {
    /// The byte fits; the pattern goes on here.
    Fits(usize),
    /// The byte doesn't fit.
    Other,
    /// There is no closing bracket.
    Open,
}

/// Looks a byte up in the set that starts with the `[` at `open`.
fn bracket(pattern: &[u8], open: usize, byte: u8) -> Bracket {
    let negated = matches!(pattern.get(open + 1), Some(b'!' | b'^'));
    let first = open + 1 + usize::from(negated);
    let mut at = first;
    loop {
        match pattern.get(at) {
            None => return Bracket::Open,
            Some(b']') if at > first => break,
            Some(_) => {}
        }
        match member(pattern, at, byte) {
            Member::Next(next) => at = next,
            Member::Bad => return Bracket::Other,
            Member::Holds(next) => {
                return match close(pattern, next) {
                    Close::At(end) if !negated => Bracket::Fits(end),
                    Close::Never => Bracket::Open,
                    Close::At(_) | Close::Bad => Bracket::Other,
                };
            }
        }
    }
    if negated { Bracket::Fits(at + 1) } else { Bracket::Other }
}

enum Member {
    /// Holds the byte; the set goes on here.
    Holds(usize),
    /// Doesn't hold it; the set goes on here.
    Next(usize),
    /// No set at all: nothing fits.
    Bad,
}

/// Looks at one member of a set: a class, a byte or a range.
fn member(pattern: &[u8], at: usize, byte: u8) -> Member {
    let told = |holds: bool, next: usize| if holds { Member::Holds(next) } else { Member::Next(next) };
    if let Some((class, next)) = class_name(pattern, at) {
        return in_class(class, byte).map_or(Member::Bad, |holds| told(holds, next));
    }
    if let Some((same, next)) = equivalent(pattern, at) {
        return told(same == byte, next);
    }
    let Some((low, next)) = range_end(pattern, at) else { return Member::Bad };
    let is_range = pattern.get(next) == Some(&b'-') && !matches!(pattern.get(next + 1), Some(b']'));
    if !is_range {
        return told(low == byte, next);
    }
    match range_end(pattern, next + 1) {
        Some((high, next)) => told((low..=high).contains(&byte), next),
        None => Member::Bad,
    }
}

/// One byte of a set, as it stands, escaped, or written `[.x.]`.
fn range_end(pattern: &[u8], at: usize) -> Option<(u8, usize)> {
    match pattern.get(at..)? {
        [b'\\', escaped, ..] => Some((*escaped, at + 2)),
        [b'\\'] | [] => None,
        [b'[', b'.', rest @ ..] => match rest {
            [symbol, b'.', b']', ..] => Some((*symbol, at + 5)),
            _ => None,
        },
        [byte, ..] => Some((*byte, at + 1)),
    }
}

/// `[:name:]` at this place. Anything but lower-case letters there makes it no class but ordinary bytes.
fn class_name(pattern: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let name = pattern.get(at..)?.strip_prefix(b"[:")?;
    let len = name.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
    name[len..].starts_with(b":]").then(|| (&name[..len], at + len + 4))
}

/// `[=x=]` at this place: in the C locale a byte is equivalent to itself alone.
fn equivalent(pattern: &[u8], at: usize) -> Option<(u8, usize)> {
    match pattern.get(at..)? {
        [b'[', b'=', same, b'=', b']', ..] => Some((*same, at + 5)),
        _ => None,
    }
}

/// Whether a class of the C locale holds a byte; `None` for a class that doesn't exist.
fn in_class(class: &[u8], byte: u8) -> Option<bool> {
    Some(match class {
        b"alnum" => byte.is_ascii_alphanumeric(),
        b"alpha" => byte.is_ascii_alphabetic(),
        b"blank" => matches!(byte, b' ' | b'\t'),
        b"cntrl" => byte.is_ascii_control(),
        b"digit" => byte.is_ascii_digit(),
        b"graph" => byte.is_ascii_graphic(),
        b"lower" => byte.is_ascii_lowercase(),
        b"print" => matches!(byte, b' '..=b'~'),
        b"punct" => byte.is_ascii_punctuation(),
        b"space" => matches!(byte, b'\t'..=b'\r' | b' '),
        b"upper" => byte.is_ascii_uppercase(),
        b"xdigit" => byte.is_ascii_hexdigit(),
        _ => return None,
    })
}

enum Close {
    /// The pattern goes on here.
    At(usize),
    /// There is no closing bracket.
    Never,
    /// The pattern ends within an escape or a collating symbol.
    Bad,
}

/// Finds the end of a set whose answer is known already.
fn close(pattern: &[u8], mut at: usize) -> Close {
    loop {
        match pattern.get(at) {
            None => return Close::Never,
            Some(b']') => return Close::At(at + 1),
            Some(b'\\') if at + 1 == pattern.len() => return Close::Bad,
            Some(b'\\') => at += 2,
            Some(_) => {
                at = class_name(pattern, at)
                    .map(|(_, next)| next)
                    .or_else(|| equivalent(pattern, at).map(|(_, next)| next))
                    .or_else(|| symbol_end(pattern, at))
                    .unwrap_or(at + 1);
            }
        }
    }
}

/// The place after a `[.symbol.]`.
fn symbol_end(pattern: &[u8], at: usize) -> Option<usize> {
    let symbol = pattern.get(at..)?.strip_prefix(b"[.")?;
    let len = symbol.windows(2).position(|pair| pair == b".]")?;
    Some(at + 2 + len + 2)
}

#[cfg(test)]
mod tests {
    use super::fnmatch;
    use proptest::prelude::*;
    use std::ffi::CString;

    fn libc_fnmatch(pattern: &[u8], name: &[u8]) -> bool {
        let pattern = CString::new(pattern).expect("no NUL");
        let name = CString::new(name).expect("no NUL");
        // SAFETY: both point to NUL-terminated strings that outlive the call.
        unsafe { libc::fnmatch(pattern.as_ptr(), name.as_ptr(), 0) == 0 }
    }

    #[test]
    fn the_rules_of_the_table_hold() {
        for (pattern, name, fits) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("**", ".a/b", true),
            ("agent_*_bytes", "agent_tx_bytes", true),
            ("agent_*_bytes", "agent_tx_bytes_total", false),
            ("?", "", false),
            ("?", "/", true),
            ("[rt]x", "tx", true),
            ("[!rt]x", "tx", false),
            ("[^rt]x", "ax", true),
            ("[a-c]", "b", true),
            ("[c-a]", "b", false),
            ("[]a]", "]", true),
            ("[!]a]", "]", false),
            ("[a-]", "-", true),
            ("[[:upper:][:digit:]]", "7", true),
            ("[[:upper:]]", "u", false),
            ("[[:nosuch:]]", "n", false),
            ("[![:nosuch:]]", "n", false),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("a\\", "a\\", false),
            ("[ab", "[ab", true),
            ("[ab", "a", false),
            ("[[a", "[[a", true),
            ("[!b", "[!b", true),
            ("NIXL_ERR_*", "nixl_err_backend", false),
            ("a*b*c", "aXbXbXc", true),
            ("a*b*c", "aXcXb", false),
        ] {
            assert_eq!(fnmatch(pattern.as_bytes(), name.as_bytes()), fits, "{pattern:?} on {name:?}");
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let pattern = b"*a".repeat(2_000);
        let mut name = b"a".repeat(4_000);
        assert!(fnmatch(&pattern, &name));
        name.push(b'b');
        assert!(!fnmatch(&pattern, &name));
    }

    #[cfg(target_env = "gnu")]
    proptest! {
        #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

        #[test]
        fn patterns_fit_what_the_c_library_says(
            pattern in "[ab*?]{0,8}|[]a\\[!^*?\\\\-]{0,10}|([ab*?]|\\[[!^]?\\]?([abc]|[a-c]-[a-c]|\\\\[]a]|\\[:(alpha|digit|space|punct|nosuch):\\]){0,3}\\]){0,4}",
            name in "[]abcz\\[!^:. 1-]{0,6}",
        ) {
            prop_assert_eq!(fnmatch(pattern.as_bytes(), name.as_bytes()), libc_fnmatch(pattern.as_bytes(), name.as_bytes()));
        }

        #[test]
        fn every_byte_is_in_the_classes_that_the_c_library_says(
            class in "alnum|alpha|blank|cntrl|digit|graph|lower|print|punct|space|upper|xdigit",
            negated: bool,
            byte in 1u8..,
        ) {
            let pattern = format!("[{}[:{class}:]]", if negated { "!" } else { "" });
            prop_assert_eq!(fnmatch(pattern.as_bytes(), &[byte]), libc_fnmatch(pattern.as_bytes(), &[byte]));
        }

        #[test]
        fn any_bytes_end_in_the_same_answer(
            pattern in prop::collection::vec(1u8.., 0..8),
            name in prop::collection::vec(1u8.., 0..8),
        ) {
            prop_assert_eq!(fnmatch(&pattern, &name), libc_fnmatch(&pattern, &name));
        }
    }
}
