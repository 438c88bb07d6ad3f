//! Texts of errors. One test reads the source of this module: no text may say "rank" twice. Others
//! are of accounts of waits: which ranks they name, and when they end.

extern crate std;

use super::*;
use std::string::ToString as _;

/// A text says "rank" before the number of one, and once.
#[test]
fn texts_name_a_rank_once() {
    let rank = Rank::new(3);
    let (index, count, size) = (7, 5, 2);
    let errors = [
        Error::PeerLost(rank),
        Error::PeerLeft(rank),
        Error::OtherBuild(rank),
        Error::NoSuchRank { rank, size },
        Error::LockedTwice(rank),
        Error::DuplicateRank(rank),
        Error::NotInGroup(rank),
        Error::Asymmetric {
            rank,
            differs: Differs::Other,
        },
        Error::NoSuchCounter { rank, index, count },
    ];
    for text in errors.map(|error| error.to_string()) {
        let found = ["rank 3", "rank", "3"].map(|word| text.matches(word).count());
        assert_eq!(found, [1; 3], "{text}");
    }
    // No text is missing above.
    let source = include_str!("mod.rs");
    assert_eq!(source.matches("{rank}").count(), errors.len());
}

#[test]
fn a_timeout_names_ranks_or_says_that_nothing_records_them() {
    let told = |waiting, ranks: &[u16], count, text: &str| {
        let named = ranks.iter().copied().map(Rank::new);
        let missing = Missing::among(named, count);
        let told = Timeout { waiting, missing }.to_string();
        assert_eq!(told.strip_prefix("timed out waiting for "), Some(text));
    };
    let unknown = "a notification by any rank (3 missing; nothing says from which)";
    told(Waiting::Notification, &[], 3, unknown);
    told(
        Waiting::Notification,
        &[3],
        19,
        "a notification by 3 (19 missing)",
    );
    told(
        Waiting::Completion,
        &[1, 4],
        2,
        "completion by 1 4 (2 missing)",
    );
    told(
        Waiting::Collective,
        &[2],
        1,
        "a collective call by 2, or by a rank that it waits for",
    );
    let counted = "the exclusive locks of 2 ranks (which ranks have locked is not recorded)";
    told(Waiting::Unlock, &[], 2, counted);
    let owner = "an unlock of the piece owned by 1 (which ranks have locked is not recorded)";
    told(Waiting::Unlock, &[1], 1, owner);
    let held = "the exclusive lock that is held by 3";
    told(Waiting::Holder, &[3], 1, held);
}

#[test]
fn what_is_missing_is_printed_without_places_for_no_rank() {
    let missing = |ranks: &[u16]| {
        let ranks = ranks.iter().copied().map(Rank::new);
        std::format!("{:?}", Missing::among(ranks, 2))
    };
    assert_eq!(
        missing(&[3]),
        "Missing { ranks: [3], count: 2, any: false }"
    );
    assert_eq!(missing(&[]), "Missing { ranks: [], count: 2, any: false }");
    let full = "Missing { ranks: [1, 2, 3, 4, 5, 6, 7, 8], count: 2, any: false }";
    assert_eq!(missing(&[1, 2, 3, 4, 5, 6, 7, 8, 9]), full);
}

/// A number that stands for more than it can say is not printed as one.
#[test]
fn bytes_that_are_missing_are_a_number_or_too_many() {
    let told = |missing_bytes| Error::MemoryFull { missing_bytes }.to_string();
    assert!(told(32).starts_with("shared memory needs 32 more bytes"));
    assert!(told(usize::MAX).starts_with("more bytes than there are addresses"));
}

/// Of a call whose handle borrows nothing; and of one whose handle does, which a box that may
/// borrow takes as it is.
#[test]
fn unfinished_calls_go_into_boxes() {
    use core::error::Error as StdError;
    use std::boxed::Box;

    fn unfinished<H>(handle: H) -> Result<(), Unfinished<H>> {
        let error = Error::CountZero;
        Err(Unfinished { handle, error })
    }
    fn owned() -> Result<(), Box<dyn StdError>> {
        unfinished(Some(7_u8))?;
        Ok(())
    }
    fn borrowed(handle: &u8) -> Result<(), Box<dyn StdError + '_>> {
        unfinished(handle)?;
        Ok(())
    }
    fn dropped(handle: &u8) -> Result<(), Box<dyn StdError + Send + Sync>> {
        Ok(unfinished(handle).map_err(Unfinished::give_up)?)
    }
    let text = Error::CountZero.to_string();
    let told = owned().expect_err("it is not finished").to_string();
    let rest = told.strip_prefix(&text);
    assert_eq!(
        rest,
        Some(" (if there is a handle, the call continues with it)")
    );
    assert_eq!(borrowed(&7).expect_err("nor is this").to_string(), told);
    assert_eq!(dropped(&7).expect_err("nor is this").to_string(), text);
}

/// A wait is over only where a rank that has left is surely one that it needs.
#[test]
fn a_wait_ends_with_a_rank_that_it_needs() {
    let r = Rank::new;
    let of = |ranks: &[u16], count| Missing::among(ranks.iter().copied().map(r), count);
    let left = |gone: &'static [u16]| move |rank: Rank| gone.contains(&rank.get());
    const EIGHT: [u16; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
    let table: [(Missing, &'static [u16], Option<u16>); 10] = [
        (of(&[2], 1), &[], None),
        (of(&[2], 1), &[2], Some(2)),
        (of(&[2], 5), &[2], Some(2)),
        (of(&[1, 2], 2), &[2], Some(2)),
        // Another one may be the one that is missing.
        (of(&[1, 2], 1), &[2], None),
        (of(&[1, 2], 1), &[2, 1], Some(1)),
        (of(&[1, 2], 2).of_any(true), &[2], None),
        (of(&[1, 2], 2).of_any(true), &[1, 2], Some(1)),
        // There may be more than are listed.
        (of(&EIGHT, 3), &EIGHT, None),
        (of(&EIGHT, 30), &[8], Some(8)),
    ];
    for (missing, gone, ended) in table {
        assert_eq!(
            missing.ended(left(gone)),
            ended.map(r),
            "{missing:?} {gone:?}"
        );
    }
}
