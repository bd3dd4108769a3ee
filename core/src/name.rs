//! Event names: at most 31 bytes of text without control characters, NUL-padded to 32.

use bytemuck::{Pod, Zeroable};

/// Room for a name in a record, its end included.
pub const NAME_SIZE: usize = 32;
/// The longest name in bytes.
pub const NAME_MAX: usize = NAME_SIZE - 1;

/// An event name as a record stores it: UTF-8, at most 31 bytes, the rest NUL.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct Name([u8; NAME_SIZE]);

impl Name {
    /// Makes a name from text. Returns it and whether it had to be changed: longer names are cut at a
    /// character boundary, each control character (NUL too) becomes `_`, an empty name becomes `_`.
    ///
    /// ```
    /// use telering_core::Name;
    /// assert_eq!(Name::new("cache_hit").0.as_str(), "cache_hit");
    /// let (name, changed) = Name::new("a name that is far too long for one record é");
    /// assert_eq!((name.as_str(), changed), ("a name that is far too long for", true));
    /// ```
    #[must_use]
    pub fn new(text: &str) -> (Name, bool) {
        let mut bytes = [0; NAME_SIZE];
        let mut len = 0;
        let mut changed = text.is_empty();
        for character in text.chars() {
            let kept = if character.is_control() { '_' } else { character };
            changed |= kept != character;
            if len + kept.len_utf8() > NAME_MAX {
                changed = true;
                break;
            }
            // A slice of `bytes` could be too short as far as the compiler knows, and firmware would link the panic.
            let mut letter = [0; 4];
            let letter = kept.encode_utf8(&mut letter).as_bytes();
            bytes.iter_mut().skip(len).zip(letter).for_each(|(place, &byte)| *place = byte);
            len += letter.len();
        }
        if len == 0 {
            bytes[0] = b'_';
        }
        (Name(bytes), changed)
    }

    /// A name known when compiling.
    ///
    /// # Panics
    /// If the text is longer than 31 bytes, which fails the build when used in a constant.
    #[must_use]
    pub const fn from_static(text: &'static str) -> Name {
        assert!(text.len() <= NAME_MAX, "an event name has at most 31 bytes");
        let source = text.as_bytes();
        let mut bytes = [0; NAME_SIZE];
        let mut at = 0;
        while at < source.len() {
            bytes[at] = source[at];
            at += 1;
        }
        Name(bytes)
    }

    /// A name as it stands in a file. Nothing is checked: see [`Name::as_str`].
    #[must_use]
    pub const fn from_bytes(bytes: [u8; NAME_SIZE]) -> Name {
        Name(bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; NAME_SIZE] {
        &self.0
    }

    /// The bytes before the first NUL.
    #[must_use]
    pub fn text_bytes(&self) -> &[u8] {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(NAME_SIZE);
        &self.0[..end]
    }

    /// The name as text. Bytes that are no UTF-8 (a foreign or damaged record) end it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let bytes = self.text_bytes();
        match core::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => core::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        }
    }
}

impl core::fmt::Debug for Name {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_name_ever_holds_a_control_character_or_half_a_letter(text in ".{0,60}|[\\x00-\\x1f]{0,40}") {
            let (name, changed) = Name::new(&text);
            prop_assert!(core::str::from_utf8(name.text_bytes()).is_ok());
            prop_assert!(!name.as_str().is_empty());
            prop_assert!(!name.as_str().chars().any(char::is_control));
            prop_assert_eq!(name.as_bytes()[NAME_MAX], 0);
            prop_assert_eq!(changed, name.as_str() != text);
        }
    }

    #[test]
    fn a_letter_that_does_not_fit_is_left_out_whole() {
        let (name, changed) = Name::new("123456789012345678901234567890é");
        assert_eq!((name.as_str(), changed), ("123456789012345678901234567890", true));
    }
}
