//! Jobs whose ranks are threads, and strangers.

use std::io::{Read as _, Write as _};
use std::net::Ipv4Addr;

use flagpost_common::patience;

use super::*;

/// What lasts longer than this on a machine at rest does not happen.
const SOON: Duration = Duration::from_secs(3);

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn hub(ranks: u16) -> (Hub, Secret) {
    let secret = Secret::new().unwrap();
    (Hub::start(LOCAL, ranks, secret).unwrap(), secret)
}

fn join(hub: &Hub, rank: u16, ranks: u16, secret: Secret) -> Meeting {
    let hub = hub.address();
    let job = Job {
        rank,
        ranks,
        hub,
        secret,
    };
    Meeting::join(&job).unwrap()
}

#[test]
fn each_rank_gets_what_all_have_given_as_often_as_they_like() {
    const RANKS: u16 = 5;
    let (hub, secret) = hub(RANKS);
    std::thread::scope(|scope| {
        for rank in 0..RANKS {
            let hub = &hub;
            scope.spawn(move || {
                let mut meeting = join(hub, rank, RANKS, secret);
                assert_eq!(meeting.own_address().unwrap(), LOCAL);
                for round in 0..50 {
                    let given = |rank: u16| vec![rank as u8; usize::from(rank) * round];
                    let all = meeting.gather(&given(rank), || ()).unwrap();
                    let expected: Vec<_> = (0..RANKS).map(given).collect();
                    assert_eq!(all, expected);
                }
                meeting.leave();
            });
        }
    });
    soon(|| (0..RANKS).all(|rank| hub.presence(rank) == Presence::Left));
}

/// Waits for what another thread does soon.
fn soon(mut happens: impl FnMut() -> bool) {
    let end = Instant::now() + patience(SOON);
    while !happens() {
        assert!(Instant::now() < end, "it does not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_rank_whose_connection_ends_is_lost_to_the_others() {
    let (hub, secret) = hub(3);
    let [mut first, second, mut third] = [0, 1, 2].map(|rank| join(&hub, rank, 3, secret));
    drop(second);
    assert_eq!(first.gather(&[], || ()), Err(Apart::Lost(1)));
    let mut calls = 0;
    assert_eq!(third.gather(&[], || calls += 1), Err(Apart::Lost(1)));
    assert_eq!(first.lost(), [1]);
    assert_eq!(hub.presence(1), Presence::Lost);
}

/// It may be killed before the others have come.
#[test]
fn a_rank_is_told_who_was_lost_before_it_came() {
    let (hub, secret) = hub(4);
    let [mut first, third] = [0, 2].map(|rank| join(&hub, rank, 4, secret));
    third.leave();
    hub.mark_lost(1);
    assert!(first.gather(&[], || ()).is_err());
    soon(|| first.lost() == [1]);
    soon(|| hub.presence(2) == Presence::Left);
    let mut last = join(&hub, 3, 4, secret);
    soon(|| {
        assert!(!last.is_broken());
        last.lost() == [1] && last.left() == [2]
    });
}

#[test]
fn a_rank_that_has_left_gives_nothing_any_more() {
    let (hub, secret) = hub(2);
    let [mut first, second] = [0, 1].map(|rank| join(&hub, rank, 2, secret));
    second.leave();
    assert_eq!(first.gather(&[], || ()), Err(Apart::Left(1)));
    hub.mark_lost(1);
    assert!(first.lost().is_empty());
    assert_eq!(first.left(), [1]);
    assert_eq!(hub.presence(1), Presence::Left);
}

#[test]
fn a_rank_that_has_ended_its_program_still_gives() {
    let (hub, secret) = hub(2);
    let [mut first, mut second] = [0, 1].map(|rank| join(&hub, rank, 2, secret));
    assert!(first.ended().is_empty());
    second.end();
    soon(|| !first.ended().is_empty());
    assert_eq!(first.ended(), [1]);
    assert_eq!(hub.presence(1), Presence::Here);
    std::thread::scope(|scope| {
        scope.spawn(|| assert!(second.gather(&[], || ()).is_ok()));
        assert!(first.gather(&[], || ()).is_ok());
    });
    assert!(first.left().is_empty() && first.lost().is_empty());
}

#[test]
fn a_hub_that_ends_is_told_from_ranks_that_do() {
    let (hub, secret) = hub(2);
    let mut first = join(&hub, 0, 2, secret);
    drop(hub);
    assert!(matches!(first.gather(&[], || ()), Err(Apart::Hub(_))));
}

/// The frame with which a rank joins.
fn greeting(secret: Secret, rank: u16, ranks: u16, version: u16) -> Vec<u8> {
    frame(Kind::Join, &super::greeting(secret, rank, ranks, version))
}

fn frame(kind: Kind, contents: &[u8]) -> Vec<u8> {
    let mut frame = (contents.len() as u32).to_le_bytes().to_vec();
    frame.push(kind as u8);
    frame.extend(contents);
    frame
}

/// Sends byte by byte, with pauses in which the hub looks.
fn drip(stream: &mut TcpStream, bytes: &[u8]) {
    stream.set_nodelay(true).unwrap();
    for byte in bytes {
        stream.write_all(&[*byte]).unwrap();
        std::thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn a_rank_that_sends_byte_by_byte_is_heard() {
    let (hub, secret) = hub(2);
    let mut first = join(&hub, 0, 2, secret);
    let mut slow = TcpStream::connect(hub.address()).unwrap();
    drip(&mut slow, &greeting(secret, 1, 2, VERSION));
    soon(|| hub.presence(1) == Presence::Here);
    drip(&mut slow, &frame(Kind::Gather, b"slow"));
    let all = vec![b"quick".to_vec(), b"slow".to_vec()];
    assert_eq!(first.gather(b"quick", || ()), Ok(all));
    drip(&mut slow, &frame(Kind::Leave, &[]));
    soon(|| hub.presence(1) == Presence::Left);
}

/// The system keeps 4 MB for a connection; what is more waits in the hub, which serves the others
/// meanwhile.
#[test]
fn a_rank_that_reads_late_and_little_holds_nobody_up_and_gets_all() {
    const ROUNDS: u8 = 100;
    let (hub, secret) = hub(2);
    let mut first = join(&hub, 0, 2, secret);
    let mut slow = TcpStream::connect(hub.address()).unwrap();
    slow.write_all(&greeting(secret, 1, 2, VERSION)).unwrap();
    // Of no power of two: a write ends anywhere in a frame.
    let given = |round| vec![round; MOST - 11];
    for round in 0..ROUNDS {
        slow.write_all(&frame(Kind::Gather, &[round])).unwrap();
        let all = vec![given(round), vec![round]];
        assert_eq!(first.gather(&given(round), || ()), Ok(all));
    }
    slow.set_read_timeout(Some(patience(SOON))).unwrap();
    for round in 0..ROUNDS {
        let expected = frame(Kind::All, &pack(&[given(round), vec![round]]));
        let mut come = vec![0; expected.len()];
        for part in come.chunks_mut(1000) {
            slow.read_exact(part).unwrap();
        }
        assert!(come == expected, "round {round}");
    }
    assert_eq!(hub.presence(1), Presence::Here);
}

/// In its greeting it is nobody yet; in what it gives, or in its farewell, it is lost.
#[test]
fn a_rank_that_stops_half_way_is_lost() {
    for last in [frame(Kind::Gather, &[1; 100]), frame(Kind::Leave, &[])] {
        let (hub, secret) = hub(2);
        let mut first = join(&hub, 0, 2, secret);
        let greeting = greeting(secret, 1, 2, VERSION);
        let mut half = TcpStream::connect(hub.address()).unwrap();
        half.write_all(&greeting[..greeting.len() - 1]).unwrap();
        drop(half);
        let mut half = TcpStream::connect(hub.address()).unwrap();
        half.write_all(&greeting).unwrap();
        soon(|| hub.presence(1) == Presence::Here);
        half.write_all(&last[..last.len() - 1]).unwrap();
        drop(half);
        assert_eq!(first.gather(&[], || ()), Err(Apart::Lost(1)));
        assert_eq!(hub.presence(1), Presence::Lost);
    }
}

/// Whether the hub closes the connection after these bytes.
fn is_sent_away(hub: &Hub, bytes: &[u8]) -> bool {
    let mut stream = TcpStream::connect(hub.address()).unwrap();
    stream.write_all(bytes).unwrap();
    stream.set_read_timeout(Some(patience(SOON))).unwrap();
    match stream.read(&mut [0]) {
        Ok(count) => count == 0,
        Err(why) => why.kind() == io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn strangers_are_sent_away_and_the_job_goes_on() {
    let (hub, secret) = hub(2);
    let mut first = join(&hub, 0, 2, secret);
    soon(|| hub.presence(0) == Presence::Here);
    let other = Secret::new().unwrap();
    let bad = [
        greeting(other, 1, 2, VERSION),
        greeting(secret, 2, 2, VERSION),
        greeting(secret, 1, 3, VERSION),
        greeting(secret, 1, 2, VERSION + 1),
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0xff; 200],
        vec![0, 0, 0, 0, Kind::Leave as u8],
    ];
    for bytes in &bad {
        assert!(is_sent_away(&hub, bytes), "{bytes:?}");
    }
    // It is here already, and is told so.
    let mut again = join(&hub, 0, 2, secret);
    assert_eq!(again.gather(b"x", || ()), Err(Apart::Again(0)));
    let silent: Vec<_> = (0..100)
        .map(|_| TcpStream::connect(hub.address()))
        .collect();
    assert_eq!(hub.presence(1), Presence::Expected);
    drop(silent);
    let mut second = join(&hub, 1, 2, secret);
    let other = std::thread::spawn(move || second.gather(b"b", || ()));
    let all = vec![b"a".to_vec(), b"b".to_vec()];
    assert_eq!(first.gather(b"a", || ()), Ok(all.clone()));
    assert_eq!(other.join().unwrap(), Ok(all));
}

/// Their connections end with something unread, and the hub's next words to them fail.
#[test]
fn ranks_that_leave_all_at_once_have_left() {
    const RANKS: u16 = 100;
    for _ in 0..10 {
        let (hub, secret) = hub(RANKS);
        let meetings: Vec<_> = { 0..RANKS }
            .map(|rank| join(&hub, rank, RANKS, secret))
            .collect();
        soon(|| (0..RANKS).all(|rank| hub.presence(rank) == Presence::Here));
        std::thread::scope(|scope| {
            for meeting in meetings {
                scope.spawn(|| meeting.leave());
            }
        });
        soon(|| (0..RANKS).all(|rank| hub.presence(rank) == Presence::Left));
    }
}

#[test]
fn no_more_is_read_ahead_than_a_frame_may_have() {
    const MOST: usize = 1000;
    let listener = std::net::TcpListener::bind((LOCAL, 0)).unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut from = Wire::new(stream).unwrap();
    let mut to = Wire::new(listener.accept().unwrap().0).unwrap();
    let contents = vec![7; MOST];
    (0..10).for_each(|_| from.push(Kind::Gather, &contents));
    from.flush_all(PATIENCE).unwrap();
    for _ in 0..10 {
        let frame = loop {
            assert!(to.fill(MOST).unwrap());
            if let Some(frame) = to.next(MOST).unwrap() {
                break frame;
            }
        };
        assert_eq!(frame, (Kind::Gather, contents.clone()));
        assert_eq!(to.next(MOST).unwrap(), None, "the next one is not read yet");
    }
}

#[test]
fn a_rank_that_talks_nonsense_is_lost() {
    let (hub, secret) = hub(2);
    let [mut first, mut second] = [0, 1].map(|rank| join(&hub, rank, 2, secret));
    second.wire.push(Kind::All, &[]);
    assert_eq!(first.gather(&[], || second.look()), Err(Apart::Lost(1)));
}

#[test]
fn secrets_are_read_and_never_shown() {
    let secret = Secret::new().unwrap();
    let text = secret.to_text();
    assert!(Secret::from_text(&text).unwrap().is(&secret.0));
    assert!(!secret.is(&secret.0[1..]) && !secret.is(&[]));
    let long = format!("{text}0");
    for bad in ["", &text[1..], &long, &"g".repeat(text.len())] {
        assert!(Secret::from_text(bad).is_none(), "{bad}");
    }
    assert_eq!(format!("{secret:?}"), "Secret");
}

#[test]
fn gatherings_that_make_no_sense_are_refused() {
    let all = vec![vec![], vec![1, 2, 3]];
    let bytes = pack(&all);
    assert_eq!(unpack(&bytes, 2), Some(all));
    for ranks in [0, 1, 3] {
        assert_eq!(unpack(&bytes, ranks), None);
    }
    assert_eq!(unpack(&bytes[..bytes.len() - 1], 2), None);
    assert_eq!(unpack(&[0xff; 4], 1), None);
}

#[test]
fn ranks_are_asked_what_they_wait_for() {
    let (hub, secret) = hub(2);
    // Ranks that come later are asked, too.
    hub.ask();
    let [mut first, mut second] = [0, 1].map(|rank| join(&hub, rank, 2, secret));
    for round in 0..2 {
        if round > 0 {
            hub.ask();
        }
        for meeting in [&mut first, &mut second] {
            soon(|| {
                meeting.look();
                meeting.is_asked()
            });
        }
        second.answer();
        assert!(!second.is_asked() && first.is_asked());
        soon(|| hub.has_answered(1));
        assert!(!hub.has_answered(0));
        first.answer();
        soon(|| hub.has_answered(0));
    }
}
