//! The bounds of the latency histograms.

use crate::warn::shown;

/// The most bounds that a histogram has: a telemetry file has room for so many.
pub const HISTOGRAM_BOUNDS_MAX: usize = telering_core::layout::parts::metrics::BOUNDS_MAX;

/// Reads a list of histogram bounds: microseconds, separated by commas, blanks around them allowed.
///
/// Bounds are positive and each is larger than the one before; there are at most [`HISTOGRAM_BOUNDS_MAX`]. A
/// bound may have a fraction or an exponent (`2.5`, `1e3`). Latencies are whole microseconds, so a fraction
/// moves no latency into another bucket: the bound is stored, and shown, as the whole microseconds below it.
/// That has to leave at least 1, and bounds have to differ in whole microseconds.
///
/// # Errors
/// What is wrong with the list and with which bound of it, for a message.
///
/// ```
/// use telering::config::parse_histogram_bounds;
/// assert_eq!(parse_histogram_bounds("10, 99.5, 1e3"), Ok(vec![10, 99, 1000]));
/// assert!(parse_histogram_bounds("10,5").unwrap_err().contains("\"5\""));
/// ```
pub fn parse_histogram_bounds(list: &str) -> Result<Vec<u64>, String> {
    let mut bounds = Vec::with_capacity(HISTOGRAM_BOUNDS_MAX);
    for token in list.split(',').map(|token| token.trim_matches([' ', '\t'])) {
        let bound = parse_bound(token).map_err(|reason| format!("the bound {} {reason}", shown(token)))?;
        if bounds.len() == HISTOGRAM_BOUNDS_MAX {
            let max = HISTOGRAM_BOUNDS_MAX;
            return Err(format!("there are more than {max} bounds; the bound {} is one too many", shown(token)));
        }
        match bounds.last() {
            Some(last) if bound <= *last => {
                let reason = "is not larger than the one before it, in whole microseconds";
                return Err(format!("the bound {} {reason} ({last})", shown(token)));
            }
            _ => bounds.push(bound),
        }
    }
    Ok(bounds)
}

/// One bound as whole microseconds, or what is wrong with it.
fn parse_bound(token: &str) -> Result<u64, &'static str> {
    let not_a_number = "is not a positive number (microseconds, such as 250 or 2.5)";
    let too_large = "is too large to be a time in microseconds";
    if !is_real(token) {
        return Err(not_a_number);
    }
    let bound = if token.bytes().all(|byte| byte.is_ascii_digit()) {
        token.parse().map_err(|_| too_large)?
    } else {
        let real: f64 = token.parse().map_err(|_| not_a_number)?;
        // The largest whole number that a double can be sure of.
        if real > 9_007_199_254_740_992.0 {
            return Err(too_large);
        }
        real as u64
    };
    if bound == 0 { Err("is less than 1 microsecond") } else { Ok(bound) }
}

/// Digits, perhaps a point and digits, perhaps an exponent. No sign, no "inf", no "nan".
fn is_real(token: &str) -> bool {
    let (number, exponent) = match token.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (token, None),
    };
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (number, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits(whole) && fraction.is_none_or(digits) && exponent.is_none_or(digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use telering_core::slot::Buckets;

    #[test]
    fn good_lists_are_read() {
        for (list, bounds) in [
            ("1", vec![1]),
            ("10,25,50", vec![10, 25, 50]),
            (" 10 ,\t25", vec![10, 25]),
            ("1e3, 2e3", vec![1000, 2000]),
            ("0.5e1,5.5E+1,600e-1", vec![5, 55, 60]),
            ("1.9,2.0,3.999", vec![1, 2, 3]),
            ("18446744073709551615", vec![u64::MAX]),
        ] {
            assert_eq!(parse_histogram_bounds(list).as_deref(), Ok(&bounds[..]), "{list}");
        }
        let full = (1..=32).map(|bound| bound.to_string()).collect::<Vec<_>>().join(",");
        assert_eq!(parse_histogram_bounds(&full), Ok((1..=32).collect()));
    }

    #[test]
    fn bad_lists_are_refused_naming_the_token() {
        let forty = (1..=40).map(|bound| bound.to_string()).collect::<Vec<_>>().join(",");
        for (list, token) in [
            ("10,5", "\"5\""),
            ("0,1", "\"0\""),
            ("0.5,1", "\"0.5\""),
            ("-1", "\"-1\""),
            ("+1", "\"+1\""),
            ("nan", "\"nan\""),
            ("inf", "\"inf\""),
            ("1,infinity", "\"infinity\""),
            ("10,,20", "\"\""),
            ("10,", "\"\""),
            ("10,10", "\"10\""),
            ("10.2,10.7", "\"10.7\""),
            ("1 2", "\"1 2\""),
            ("10;20", "\"10;20\""),
            ("0x10", "\"0x10\""),
            ("1.", "\"1.\""),
            (".5", "\".5\""),
            ("1e", "\"1e\""),
            ("1e400", "\"1e400\""),
            ("1,18446744073709551616", "\"18446744073709551616\""),
            (&forty, "\"33\""),
        ] {
            let fault = parse_histogram_bounds(list).expect_err(list);
            assert!(fault.contains(token), "{list}: {fault}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_makes_buckets(list in "([0-9]{1,4}(\\.[0-9])?(e[0-9])?,? ?){0,5}|\\PC{0,20}") {
            if let Ok(bounds) = parse_histogram_bounds(&list) {
                prop_assert!(!bounds.is_empty() && Buckets::new(&bounds).is_ok());
            }
        }

        #[test]
        fn a_fraction_moves_no_latency_into_another_bucket(tenths in 10u64..100_000, latency in 0u64..10_001) {
            let text = format!("{}.{}", tenths / 10, tenths % 10);
            let bounds = parse_histogram_bounds(&text).expect("a good bound");
            prop_assert_eq!(latency <= bounds[0], latency * 10 <= tenths);
        }
    }
}
