//! Frames over a connection, without waiting.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use rustix::net::sockopt;

/// Bytes before a frame's contents.
const HEAD: usize = 5;

/// What a frame says.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Join = 1,
    Gather,
    Leave,
    All,
    Lost,
    Left,
    End,
    Ended,
    Again,
    Ask,
    Answer,
}

impl Kind {
    fn of(number: u8) -> Option<Self> {
        use Kind::{Again, All, Answer, Ask, End, Ended, Gather, Join, Leave, Left, Lost};
        let all = [
            Join, Gather, Leave, All, Lost, Left, End, Ended, Again, Ask, Answer,
        ];
        all.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// One end of a connection.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) stream: TcpStream,
    come: Vec<u8>,
    to_go: VecDeque<u8>,
}

/// A host that is cut off says nothing: how long a connection is silent before the system asks
/// whether the other side is there, how often it asks, and how many times.
const SILENCE: Duration = Duration::from_secs(10);
const QUESTIONS: Duration = Duration::from_secs(2);
const UNANSWERED: u32 = 5;

/// While sent bytes are not acknowledged, the system does not ask: for how many milliseconds.
const UNACKNOWLEDGED: u32 = 20_000;

impl Wire {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        sockopt::set_tcp_keepidle(&stream, SILENCE)?;
        sockopt::set_tcp_keepintvl(&stream, QUESTIONS)?;
        sockopt::set_tcp_keepcnt(&stream, UNANSWERED)?;
        sockopt::set_socket_keepalive(&stream, true)?;
        sockopt::set_tcp_user_timeout(&stream, UNACKNOWLEDGED)?;
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            come: Vec::new(),
            to_go: VecDeque::new(),
        })
    }

    /// Adds a frame to what is to go.
    pub(super) fn push(&mut self, kind: Kind, contents: &[u8]) {
        self.to_go.extend((contents.len() as u32).to_le_bytes());
        self.to_go.push_back(kind as u8);
        self.to_go.extend(contents);
    }

    /// Whether there is something to go.
    pub(super) fn is_full(&self) -> bool {
        !self.to_go.is_empty()
    }

    /// Sends what the connection takes now.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while !self.to_go.is_empty() {
            match self.stream.write(self.to_go.as_slices().0) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(sent) => drop(self.to_go.drain(..sent)),
                Err(why) if why.kind() == ErrorKind::WouldBlock => break,
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    /// [`flush`](Self::flush) until nothing is left, for this long at most.
    pub(super) fn flush_all(&mut self, patience: Duration) -> io::Result<()> {
        let end = Instant::now() + patience;
        loop {
            self.flush()?;
            if !self.is_full() {
                return Ok(());
            }
            if Instant::now() > end {
                return Err(ErrorKind::TimedOut.into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Nothing goes any more. What has come can still be read, and the end after it.
    pub(super) fn close(&mut self) {
        self.to_go.clear();
        // If the other side has closed the connection, there is nothing to do.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Reads what has come, until there is a frame with `most` bytes of contents; false if nothing
    /// comes any more. Who takes all frames after each call keeps no more than that.
    pub(super) fn fill(&mut self, most: usize) -> io::Result<bool> {
        let mut bytes = [0; 4096];
        while self.come.len() < HEAD + most {
            let room = bytes.len().min(HEAD + most - self.come.len());
            match self.stream.read(&mut bytes[..room]) {
                Ok(0) => return Ok(false),
                Ok(count) => self.come.extend(&bytes[..count]),
                Err(why) if why.kind() == ErrorKind::WouldBlock => break,
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
        Ok(true)
    }

    /// The next whole frame, if it has come. `most` is how many bytes its contents may have.
    pub(super) fn next(&mut self, most: usize) -> io::Result<Option<(Kind, Vec<u8>)>> {
        let Some(head) = self.come.first_chunk::<HEAD>() else {
            return Ok(None);
        };
        let len = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let kind = Kind::of(head[4]).filter(|_| len <= most);
        let kind = kind.ok_or(ErrorKind::InvalidData)?;
        if self.come.len() < HEAD + len {
            return Ok(None);
        }
        let contents = self.come[HEAD..HEAD + len].to_vec();
        self.come.drain(..HEAD + len);
        Ok(Some((kind, contents)))
    }
}
