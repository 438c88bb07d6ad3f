//! The regular expressions of the checks. Each is compiled when it is used first.

use std::sync::LazyLock;

use regex::Regex;

/// A regular expression that is known to be right: the tests use each.
pub(super) fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap_or_else(|why| unreachable!("{why}"))
}

macro_rules! patterns {
    ($($(#[$doc:meta])* $name:ident = $text:expr;)*) => {
        $($(#[$doc])* pub(super) static $name: LazyLock<Regex> =
            LazyLock::new(|| pattern($text));)*
    };
}

patterns! {
    /// The heading of a section about errors, and any heading after it.
    ERRORS = r"(?m)^# Errors[ ]*$";
    NEXT = r"(?m)^# ";
    /// A sentence that only points elsewhere: "As there", or "As" and a link.
    ELSEWHERE = r"\bAs\s+(?:\w+\s+)?(?:there\b|`?\[)";

    /// *Behind* of a time. Places match too, without the group.
    BEHIND = r"(?i)\b(?:lies?|lay|lying|stands?|stood)\s+behind\b|\b(behind)\b";
    /// *Own* that does not say whose. With a possessor, and in a link's target, it matches too,
    /// without the group.
    OWN = r"(?i)\]\([^)]*\)|(?:\b(?:my|our|your|his|her|its|their)|'s|s')\s+\[?own\b|\b(own)\b";
    /// A clause that begins with a pronoun in the place of a noun.
    HEADLESS = r"\b(What|Whether|Who)\b";
    /// Where sentences end that a header begins with: a heading, a table, a list or code.
    STRUCTURE = r"(?m)^(?:#|\||[*-] |[A-Z]?\d+\. |\n\n)";
    /// The end of a sentence.
    SENTENCE = r"[.!?]\)?(?:\s|$)";
    /// A mutation point, up to its reason.
    REASON = r#"\b(?:point|order|site)!\(\s*(?:[A-Z_]+\s+)?"([^"]*)":"#;

    /// A comment, in the group; and what may hold its marks: a string, raw or not, a character.
    TOKEN = r##"(?s)(//[^\n]*|/\*.*?\*/)|\b[bc]?r(?:"[^"]*"|#".*?"#|#{2}".*?"#{2}|#{3}".*?"#{3})|"(?:\\.|[^"\\])*"|'(?:\\.[^'\n]*|[^'\\\n])'"##;
    /// A code span, not across an empty line.
    CODE = r"`(?:[^`\n]|\n[^`\n])*`";
    /// A link with its text.
    WHOLE_LINK = r"\[[^\]]*\]\([^)]*\)";
    /// A number, or a word for a ratio. Other words match too, with their digits, without the
    /// group.
    NUMBER = r"(?i)\b(twice|thrice|half|(?:a|one|two|three)[\s-]+(?:third|quarter|fifth|tenth)s?|(?:two|three|four|five|six|seven|eight|nine|ten)(?:[\s-]+times|fold))\b|[a-z_][\w-]*|(\d+(?:,\d+)*(?:\.\d+)?)";
    /// A file that is named. Targets of links and addresses match too, without the group.
    DOCUMENT = r"\]\([^)]*\)|\w+://\S+|([\w./-]*\w\.(?:md|csv|tsv))\b";
    SOURCE = r"\]\([^)]*\)|\w+://\S+|([\w./-]*\w\.rs)\b";
    /// A key in brackets: `[NA]`, or `[EAS, recalled]`. The second group makes it a link.
    KEY = r"\[([A-Za-z][A-Za-z0-9-]+)(?:,[^\]]*)?\](\(|\[)?";
    /// The key's row in the references.
    KEY_ROW = r"(?m)^\| *`?\[([A-Za-z0-9-]+)\]`? *\|";
    /// The name of the document of facts, and labels after it.
    LABELS = r"hardware\.md[`\])]*[,;]?\s+([A-Z]\d+(?:(?:,|\s+and|\s+to)\s+[A-Z]\d+)*)\b";
    LABEL = r"[A-Z]\d+";
    /// Where a label is defined: in bold, or at the beginning of a heading.
    LABEL_BOLD = r"\*\*([A-Z]\d+)\b[^*]*\*\*";
    LABEL_HEADING = r"(?m)^#+ ([A-Z]\d+)\b";
    /// A code span; a row's number; the name of a case.
    SPAN = r"`([^`\n]+)`";
    ROW = r"(?m)^\| *(\d+) *\|.*$";
    CASE = r"^[a-z]+(?:\.[a-z_0-9]+)+$";
    /// A macro that lists cases; a case in it; a use with a prefix.
    FAMILY = r"(?ms)^macro_rules! (\w+) \{\n(.*?)^\}";
    MEMBER = r#"\["([a-z]+\.)" \$prefix "(\w+)""#;
    PREFIX = r#"(\w+)!\(\s*"([a-z.]*)""#;
    /// In a program: the variant of an enumeration, a field, a word in quotes.
    VARIANT = r"(?m)^ +([A-Z]\w*)(?:\(|,| \{)";
    FIELD = r"(?m)^ +(?:pub(?:\(\w+\))? )?(\w+): ";
    QUOTED = r#""((?:--)?[a-z][a-z-]*)"#;
    /// A name of a call.
    CALL = r"\b[a-z]+(?:_[a-z]+)+\b";
    /// Notebooks that are not in the repository.
    NOTEBOOK = r"\b(HARDWARE|VERIFICATION|FABRIC|BAREMETAL|DESIGN)\b(\.md)?";
}
