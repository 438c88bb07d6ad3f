//! What stands for MPICH's `mpiexec`.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Barrier, Mutex};

/// A launcher's end of a rank's descriptor. `broken` changes an answer, by its command.
pub(crate) fn serve(
    stream: UnixStream,
    words: &Mutex<HashMap<String, String>>,
    barrier: &Barrier,
    broken: impl Fn(&str, String) -> String,
) {
    let mut answers = stream.try_clone().expect("a socket");
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let (command, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let of = |key| {
            let value = |word: &str| Some(word.strip_prefix(key)?.strip_prefix('=')?.to_owned());
            rest.split(' ').find_map(value).expect("it is there")
        };
        let answer = match command {
            "cmd=init" => {
                assert_eq!(rest, "pmi_version=1 pmi_subversion=1");
                "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0".to_owned()
            }
            "cmd=get_my_kvsname" => "cmd=my_kvsname kvsname=kvs_7_0".to_owned(),
            "cmd=put" => {
                assert_eq!(of("kvsname"), "kvs_7_0");
                words.lock().expect("a map").insert(of("key"), of("value"));
                "cmd=put_result rc=0 msg=success".to_owned()
            }
            "cmd=barrier_in" => {
                barrier.wait();
                "cmd=barrier_out rc=0".to_owned()
            }
            "cmd=get" => match words.lock().expect("a map").get(&of("key")) {
                Some(value) => format!("cmd=get_result rc=0 msg=success value={value}"),
                None => "cmd=get_result rc=-1 msg=key_not_found value=unknown".to_owned(),
            },
            "cmd=finalize" => "cmd=finalize_ack rc=0".to_owned(),
            other => panic!("no such command: {other}"),
        };
        let answer = broken(command, answer + "\n");
        // A rank that does not like it is gone.
        if answer.is_empty() || answers.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}
