//! Normalisation: any text becomes bytes of one small alphabet, with a map back to the text as given.
//!
//! ASCII stays. Digits of other scripts become ASCII digits; signs that matter get a code of one byte above 0x7f; invisible
//! characters, comments and emphasis vanish; what hides or imitates a digit becomes [`UNREADABLE`]. Implements decision 12
//! (hostile text) of the gate's specification. It decides nothing about figures.

/// Codes of one byte for characters outside ASCII that the scanner tells apart.
pub(crate) mod code {
    pub(crate) const EURO: u8 = 0x80;
    pub(crate) const POUND: u8 = 0x81;
    pub(crate) const YEN: u8 = 0x82;
    pub(crate) const RUPEE: u8 = 0x83;
    pub(crate) const WON: u8 = 0x84;
    pub(crate) const RUBLE: u8 = 0x85;
    pub(crate) const LIRA: u8 = 0x86;
    pub(crate) const BITCOIN: u8 = 0x87;
    pub(crate) const CENT: u8 = 0x88;
    /// A currency sign that is none of those above.
    pub(crate) const OTHER_CURRENCY: u8 = 0x89;
    pub(crate) const TIMES: u8 = 0x8a;
    pub(crate) const MINUS: u8 = 0x8b;
    pub(crate) const EN_DASH: u8 = 0x8c;
    pub(crate) const EM_DASH: u8 = 0x8d;
    /// A narrow or no-break space, which may group digits.
    pub(crate) const NARROW: u8 = 0x8e;
    /// A letter that is not ASCII.
    pub(crate) const LETTER: u8 = 0x8f;
    /// Anything else.
    pub(crate) const SYMBOL: u8 = 0x90;
    /// A circled or otherwise disguised digit.
    pub(crate) const UNREADABLE: u8 = 0x91;
    /// A mark that reorders text.
    pub(crate) const REORDER: u8 = 0x92;
    pub(crate) const BULLET: u8 = 0x93;
    pub(crate) const AT_MOST: u8 = 0x94;
    pub(crate) const AT_LEAST: u8 = 0x95;
    /// Less than. A code of its own, so that no text becomes a comment by being cleaned.
    pub(crate) const LESS: u8 = 0x96;
    /// Superscript zero; the nine others follow.
    pub(crate) const SUPERSCRIPT: u8 = 0xa0;
    pub(crate) const SUPERSCRIPT_MINUS: u8 = 0xaa;
    /// One half; then one quarter, three quarters, one third, two thirds.
    pub(crate) const HALF: u8 = 0xb0;
}

/// Blanks before a bullet that are still an indentation.
const INDENT_MAX: usize = 16;

/// Text in the scanner's alphabet.
#[derive(Debug, Default)]
pub(crate) struct Clean {
    /// The bytes to scan.
    pub(crate) bytes: Vec<u8>,
    /// `(position in bytes, position in the text)` wherever the two stop running in step.
    steps: Vec<(u32, u32)>,
}

impl Clean {
    /// Where the character at `at` of the clean bytes begins in the text.
    pub(crate) fn start(&self, at: usize) -> usize {
        let at = at as u32;
        let step = self.steps.partition_point(|&(clean, _)| clean <= at);
        match step.checked_sub(1).and_then(|i| self.steps.get(i)) {
            Some(&(clean, text)) => (text + (at - clean)) as usize,
            None => at as usize,
        }
    }

    /// Where the character before `end` of the clean bytes ends in the text.
    pub(crate) fn end(&self, end: usize, text: &str) -> usize {
        let Some(last) = end.checked_sub(1) else { return 0 };
        let start = self.start(last);
        let rest = text.get(start..).unwrap_or_default();
        if self.bytes.get(last) != Some(&b'&')
            && rest.starts_with('&')
            && let Some((_, length)) = entity(rest)
        {
            return start + length;
        }
        start + rest.chars().next().map_or(0, char::len_utf8)
    }
}

/// Brings a text into the scanner's alphabet. One pass, linear.
pub(crate) fn clean(text: &str) -> Clean {
    let bytes = text.as_bytes();
    let mut out = Clean { bytes: Vec::with_capacity(bytes.len()), steps: Vec::new() };
    let mut comments_close = true;
    let mut at = 0;
    while at < bytes.len() {
        let run = bytes[at..].iter().position(|&b| SPECIAL[usize::from(b)]).unwrap_or(bytes.len() - at);
        out.bytes.extend_from_slice(&bytes[at..at + run]);
        at += run;
        if at == bytes.len() {
            break;
        }
        let (replacement, length) = special(text, at, &out.bytes, &mut comments_close);
        if let Some(byte) = replacement {
            out.bytes.push(byte);
        }
        at += length;
        out.steps.push((out.bytes.len() as u32, at as u32));
    }
    out
}

/// [`is_special`] of every byte.
const SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = is_special(byte as u8);
        byte += 1;
    }
    table
};

const fn is_special(byte: u8) -> bool {
    matches!(byte, 0x80.. | b'&' | b'*' | b'`' | b'_' | b'<' | b'\\' | 0x00..=0x08 | 0x0b..=0x0c | 0x0e..=0x1f | 0x7f)
}

/// What stands for the special character at `at`, and how many bytes of the text it takes.
fn special(text: &str, at: usize, out: &[u8], comments_close: &mut bool) -> (Option<u8>, usize) {
    let bytes = text.as_bytes();
    let next = bytes.get(at + 1).copied().unwrap_or(b' ');
    match bytes[at] {
        b'&' => match entity(&text[at..]) {
            Some(('&', length)) => (Some(ampersand(bytes, at + length, out)), length),
            Some((c, length)) => (character(c), length),
            None => (Some(ampersand(bytes, at + 1, out)), 1),
        },
        b'*' => {
            // only a short indentation is looked at: the walk back must not grow with the line
            let indent = out.iter().rev().take(INDENT_MAX).take_while(|b| matches!(b, b' ' | b'\t')).count();
            let at_line_start = indent == out.len() || out[out.len() - indent - 1] == b'\n';
            (if next == b' ' && at_line_start { Some(code::BULLET) } else { None }, 1)
        }
        b'`' => (None, 1),
        b'_' => {
            let before = out.last().copied().unwrap_or(b' ');
            let kept = before.is_ascii_digit() && next.is_ascii_digit()
                || before.is_ascii_alphanumeric() && next.is_ascii_alphanumeric();
            (if kept { Some(b'_') } else { None }, 1)
        }
        b'<' if *comments_close && bytes[at..].starts_with(b"<!--") => match text[at + 4..].find("-->") {
            Some(length) => (None, 4 + length + 3),
            None => {
                *comments_close = false;
                (Some(code::LESS), 1)
            }
        },
        b'<' => (Some(code::LESS), 1),
        b'\\' if next.is_ascii_punctuation() => (None, 1),
        b'\\' => (Some(code::SYMBOL), 1),
        0x0b | 0x0c | 0x1c..=0x1e => (Some(b'\n'), 1),
        0x00..=0x7f => (Some(code::SYMBOL), 1),
        _ => {
            let c = text[at..].chars().next().unwrap_or(' ');
            (character(c), c.len_utf8())
        }
    }
}

/// An ampersand joins two letters of a name; any other might begin a character reference once the text is clean.
fn ampersand(bytes: &[u8], next: usize, out: &[u8]) -> u8 {
    let letter = bytes.get(next).filter(|b| b.is_ascii_alphabetic());
    let after = bytes.get(next + 1);
    let alone = letter.is_some_and(u8::is_ascii_uppercase)
        || after.is_none_or(|b| matches!(b, b' ' | b'.' | b',' | b')' | b'\'' | b'\n' | b':' | b'-'));
    if letter.is_some() && alone && out.last().is_some_and(u8::is_ascii_alphabetic) { b'&' } else { code::SYMBOL }
}

/// A character reference at the start of `text`: the character and the bytes it takes.
fn entity(text: &str) -> Option<(char, usize)> {
    const NAMED: &[(&str, char)] = &[
        ("amp", '&'),
        ("nbsp", '\u{a0}'),
        ("lt", '<'),
        ("gt", '>'),
        ("quot", '"'),
        ("apos", '\''),
        ("dollar", '$'),
        ("euro", '€'),
        ("pound", '£'),
        ("yen", '¥'),
        ("cent", '¢'),
        ("percnt", '%'),
        ("minus", '\u{2212}'),
        ("ndash", '–'),
        ("mdash", '—'),
        ("times", '×'),
        ("period", '.'),
        ("comma", ','),
        ("shy", '\u{ad}'),
        ("zwnj", '\u{200c}'),
        ("half", '½'),
        ("lsqb", '['),
        ("rsqb", ']'),
    ];
    let body = text.strip_prefix('&')?;
    let length = body.bytes().take(12).position(|b| b == b';')?;
    let name = body.get(..length)?;
    let c = match name.strip_prefix('#') {
        Some(number) => {
            let value = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(value)?
        }
        None => NAMED.iter().find(|(known, _)| *known == name).map(|&(_, c)| c)?,
    };
    Some((c, length + 2))
}

/// The byte that stands for a character; none when it is invisible.
fn character(c: char) -> Option<u8> {
    if is_invisible(c) {
        return None;
    }
    let byte = match c {
        // a mark that would be emphasis, a comment or an escape if it stood there itself
        '*' | '`' | '_' | '\\' | '&' | '\u{ff0a}' | '\u{ff40}' | '\u{ff3f}' | '\u{ff3c}' | '\u{ff06}' => code::SYMBOL,
        '<' | '\u{ff1c}' => code::LESS,
        '\t' | '\n' | '\r' | ' '..='~' => c as u8,
        '\u{85}' | '\u{2028}' | '\u{2029}' => b'\n',
        '\u{a0}' | '\u{202f}' | '\u{2007}'..='\u{200a}' => code::NARROW,
        '\u{1680}' | '\u{2000}'..='\u{2006}' | '\u{205f}' | '\u{3000}' => b' ',
        // a fullwidth letter is read as a small letter, so that it can spell a scale word and never a citation
        '\u{ff21}'..='\u{ff3a}' => (c as u32 - 0xff21) as u8 + b'a',
        _ => currency_sign(c).or_else(|| mark(c)).or_else(|| small_figure(c)).unwrap_or_else(|| digit_or_letter(c)),
    };
    Some(byte)
}

/// Characters that a reader does not see: joiners, soft hyphens, variation selectors, tags.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200d}'
            | '\u{2060}'..='\u{2064}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

fn currency_sign(c: char) -> Option<u8> {
    Some(match c {
        '\u{ff04}' | '\u{fe69}' => b'$',
        '€' => code::EURO,
        '£' | '\u{ffe1}' => code::POUND,
        '¥' | '\u{ffe5}' => code::YEN,
        '₹' => code::RUPEE,
        '₩' | '\u{ffe6}' => code::WON,
        '₽' => code::RUBLE,
        '₺' => code::LIRA,
        '₿' => code::BITCOIN,
        '¢' | '\u{ffe0}' => code::CENT,
        '¤' | '\u{20a0}'..='\u{20cf}' => code::OTHER_CURRENCY,
        _ => return None,
    })
}

/// Dashes, quotes, points, signs of comparison and of order.
fn mark(c: char) -> Option<u8> {
    Some(match c {
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}' => code::REORDER,
        '×' | '✕' | '✖' | '⨯' => code::TIMES,
        '\u{207b}' => code::SUPERSCRIPT_MINUS,
        '\u{2212}' | '\u{fe63}' | '\u{ff0d}' => code::MINUS,
        '\u{2010}' | '\u{2011}' => b'-',
        '\u{2012}' | '\u{2013}' => code::EN_DASH,
        '\u{2014}' | '\u{2015}' => code::EM_DASH,
        '\u{2018}' | '\u{2019}' | '\u{2bc}' => b'\'',
        '\u{201c}' | '\u{201d}' => b'"',
        '\u{ff05}' | '\u{fe6a}' | '\u{66a}' => b'%',
        '\u{2248}' | '\u{223c}' | '\u{2243}' => b'~',
        '\u{2264}' => code::AT_MOST,
        '\u{2265}' => code::AT_LEAST,
        '\u{2022}' | '\u{25cf}' | '\u{25aa}' | '\u{25e6}' | '\u{2043}' => code::BULLET,
        '\u{66b}' | '\u{2024}' | '\u{ff0e}' => b'.',
        '\u{66c}' | '\u{ff0c}' => b',',
        '\u{ff01}'..='\u{ff5e}' => (c as u32 - 0xff01) as u8 + b'!',
        _ => return None,
    })
}

/// Raised digits, fractions of one character, and digits in a disguise.
fn small_figure(c: char) -> Option<u8> {
    Some(match c {
        '\u{2070}' => code::SUPERSCRIPT,
        '\u{b9}' => code::SUPERSCRIPT + 1,
        '\u{b2}' => code::SUPERSCRIPT + 2,
        '\u{b3}' => code::SUPERSCRIPT + 3,
        '\u{2074}'..='\u{2079}' => code::SUPERSCRIPT + (c as u32 - 0x2070) as u8,
        '\u{bd}' => code::HALF,
        '\u{bc}' => code::HALF + 1,
        '\u{be}' => code::HALF + 2,
        '\u{2153}' => code::HALF + 3,
        '\u{2154}' => code::HALF + 4,
        '\u{2150}'..='\u{218b}'
        | '\u{2080}'..='\u{2089}'
        | '\u{2460}'..='\u{249b}'
        | '\u{24ea}'..='\u{24ff}'
        | '\u{2776}'..='\u{2793}'
        | '\u{3220}'..='\u{3229}'
        | '\u{3280}'..='\u{3289}'
        | '\u{1f100}'..='\u{1f10c}' => code::UNREADABLE,
        _ => return None,
    })
}

/// First code points of the decimal digits of other scripts.
const ZEROS: &[u32] = &[
    0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50, 0xed0, 0xf20,
    0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0,
    0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1fbf0,
];

/// Letters of other scripts that look like Latin ones.
const LOOKALIKES: &[(char, u8)] = &[
    ('а', b'a'),
    ('е', b'e'),
    ('о', b'o'),
    ('р', b'p'),
    ('с', b'c'),
    ('у', b'y'),
    ('х', b'x'),
    ('і', b'i'),
    ('ј', b'j'),
    ('ѕ', b's'),
    ('ԁ', b'd'),
    ('һ', b'h'),
    ('ӏ', b'l'),
    ('п', b'n'),
    ('м', b'm'),
    ('т', b't'),
    ('к', b'k'),
    ('в', b'b'),
    ('н', b'h'),
    ('г', b'r'),
    ('ο', b'o'),
    ('α', b'a'),
    ('ι', b'i'),
    ('ν', b'v'),
    ('ρ', b'p'),
    ('κ', b'k'),
    ('τ', b't'),
    ('υ', b'u'),
    ('ı', b'i'),
    ('ℓ', b'l'),
];

fn digit_or_letter(c: char) -> u8 {
    let value = c as u32;
    if value >= 0x660
        && let Some(zero) = ZEROS.iter().find(|&&zero| (zero..zero + 10).contains(&value))
    {
        return b'0' + (value - zero) as u8;
    }
    if c.is_alphabetic() {
        let lower = c.to_lowercase().next().unwrap_or(c);
        return LOOKALIKES.iter().find(|(known, _)| *known == lower).map_or(code::LETTER, |&(_, latin)| latin);
    }
    if c.is_numeric() {
        return code::UNREADABLE;
    }
    if c.is_whitespace() { b' ' } else { code::SYMBOL }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A character that is cleaned to a code.
    fn written(byte: u8) -> char {
        const ABOVE: &[char] = &[
            '€', '£', '¥', '₹', '₩', '₽', '₺', '₿', '¢', '¤', '×', '\u{2212}', '–', '—', '\u{202f}', 'é', '§', '①',
            '\u{202e}', '•', '≤', '≥', '＜',
        ];
        const RAISED: [char; 11] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹', '⁻'];
        const PARTS: [char; 5] = ['½', '¼', '¾', '⅓', '⅔'];
        match byte {
            0..0x80 => char::from(byte),
            code::SUPERSCRIPT..=code::SUPERSCRIPT_MINUS => RAISED[usize::from(byte - code::SUPERSCRIPT)],
            code::HALF..=0xb4 => PARTS[usize::from(byte - code::HALF)],
            _ => ABOVE[usize::from(byte - 0x80)],
        }
    }

    fn assert_settled(text: &str) {
        let once = clean(text).bytes;
        let again: String = once.iter().map(|&byte| written(byte)).collect();
        assert_eq!(
            String::from_utf8_lossy(&clean(&again).bytes),
            String::from_utf8_lossy(&once),
            "{text:?} became {again:?}"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 5000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn cleaning_twice_is_cleaning_once(text in any::<String>(), parts in proptest::collection::vec(0usize..30, 0..14)) {
            const PARTS: [&str; 30] = [
                "&", "#54;", "amp;", "lt;", "a", "R", "D", "<", "!--", "-->", "\u{200b}", "*", " ", "\n", "_", "6", "\\", "`", "-", ">", "&#42;", "&lt;", "\u{ff0a}",
                "\u{ad}", "&nbsp;", "\u{ff36}", "\u{ff16}", ".", "\u{2007}", ";",
            ];
            assert_settled(&text);
            assert_settled(&parts.iter().map(|&i| PARTS[i]).collect::<String>());
        }
    }

    #[test]
    fn names_with_an_ampersand_stay_words() {
        assert_eq!(clean("R&D, S&amp;P and r&d").bytes, b"R&D, S&P and r&d");
        assert_eq!(clean("6&#42;1 &lt;!-- x -->").bytes, b"6\x901 \x96!-- x -->");
    }
}
