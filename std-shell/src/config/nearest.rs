//! The known word that somebody probably meant.

/// The candidate nearest to a word, upper and lower case alike: the one that takes the fewest changed, added,
/// missing or swapped characters, at most four and a third of the word; else one that the word is the beginning or
/// the end of. `None` when nothing is near. Of equals, the first.
pub(super) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let word = word.to_ascii_uppercase().into_bytes();
    let most = (word.len() / 3).clamp(1, 4);
    let near = |candidate: &&'a str| candidate.len().abs_diff(word.len()) <= most;
    let measured = candidates.clone().filter(near).map(|candidate| {
        let letters = candidate.to_ascii_uppercase().into_bytes();
        (distance(&word, &letters), candidate)
    });
    let best = measured.filter(|(steps, _)| *steps <= most).min_by_key(|(steps, _)| *steps);
    best.map(|(_, candidate)| candidate).or_else(|| candidates.clone().find(|candidate| is_part_of(&word, candidate)))
}

/// Whether a word of at least three letters is the first or the last words of a candidate.
fn is_part_of(word: &[u8], candidate: &str) -> bool {
    let candidate = candidate.to_ascii_uppercase().into_bytes();
    word.len() >= 3
        && (candidate.strip_prefix(word).is_some_and(|rest| rest.starts_with(b"_"))
            || candidate.strip_suffix(word).is_some_and(|rest| rest.ends_with(b"_")))
}

/// How many bytes have to be changed, added, dropped or swapped with their neighbour.
fn distance(from: &[u8], to: &[u8]) -> usize {
    // Rows of the usual table: two ago (for swaps), the last, and the one being made.
    let mut before = vec![0; to.len() + 1];
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (row, left) in from.iter().enumerate() {
        let mut next = vec![row + 1; to.len() + 1];
        for (column, right) in to.iter().enumerate() {
            let changed = last[column] + usize::from(left != right);
            let mut least = changed.min(last[column + 1] + 1).min(next[column] + 1);
            if row > 0 && column > 0 && *left == to[column - 1] && from[row - 1] == *right {
                least = least.min(before[column - 1] + 1);
            }
            next[column + 1] = least;
        }
        before = std::mem::replace(&mut last, next);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_single_mistakes() {
        for (from, to, steps) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("dir", "dir", 0),
            ("dri", "dir", 1),
            ("dirs", "dir", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(from.as_bytes(), to.as_bytes()), steps, "{from} {to}");
        }
    }

    #[test]
    fn a_slip_finds_its_word_and_a_stranger_finds_none() {
        let words = ["ENABLE", "DIR", "BUFFER_SIZE", "RUN_INTERVAL", "RANK_ENV"];
        for (word, meant) in [
            ("ENABLED", Some("ENABLE")),
            ("enable", Some("ENABLE")),
            ("BUFFERSIZE", Some("BUFFER_SIZE")),
            ("DRI", Some("DIR")),
            ("INTERVAL", Some("RUN_INTERVAL")),
            ("RANK", Some("RANK_ENV")),
            ("COLOUR", None),
            ("", None),
            ("X", None),
        ] {
            assert_eq!(nearest(word, words.into_iter()), meant, "{word}");
        }
    }
}
