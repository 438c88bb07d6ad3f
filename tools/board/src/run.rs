//! One boot of an image, as the host sees it: what was planned, what came of each case, and what
//! else went wrong.
//!
//! # Guarantee
//! [`Run::ok`] only if the image announced a plan, ended every planned case with success, said
//! `@done`, and QEMU then exited with status 0. Anything else leaves at least one entry in
//! [`Run::errors`], which names the case and, where one is known, the core.

use flagpost_programs::count::Count;

use crate::protocol::Record;

/// What came of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Begun, not ended.
    Running,
    Passed,
    /// The word for the table, and what happened.
    Failed(&'static str, String),
    /// The numbers of cores it needs.
    Skipped(String),
}

/// A case of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    pub name: String,
    pub outcome: Outcome,
    pub instructions: Option<u64>,
    /// Nothing that comes later can change it.
    pub over: bool,
}

/// A measured value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub case: String,
    pub core: u32,
    pub what: String,
    pub value: String,
}

/// The answer to `list=1`.
#[derive(Debug, Clone)]
pub struct Listed {
    pub case: String,
    pub min: u32,
    pub max: u32,
}

/// How QEMU ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this status (`None`: killed by a signal) and these words of its own.
    Ended { status: Option<i32>, stderr: String },
    /// Stopped by us: what the cores were doing.
    Hung(String),
}

/// One boot.
#[derive(Debug, Default)]
pub struct Run {
    /// Cores asked for.
    pub cores: u32,
    pub seed: u32,
    /// Each core has a host thread.
    pub parallel: bool,
    /// No plan is expected, as of an image without cases, or one asked for its list of cases: only
    /// the exit status counts.
    pub plain: bool,
    /// Cases to run and to skip, once announced.
    pub plan: Option<(u32, u32)>,
    pub cases: Vec<Case>,
    pub notes: Vec<Note>,
    pub listed: Vec<Listed>,
    /// Bytes of its stack that core 0 has used, and how many there are.
    pub stack: Option<(u32, u32)>,
    pub errors: Vec<String>,
    /// What `@done` reported failed.
    pub done: Option<u32>,
}

impl Run {
    pub fn new(cores: u32, seed: u32) -> Self {
        Self {
            cores,
            seed,
            ..Self::default()
        }
    }

    /// Everything planned ran and succeeded.
    pub fn ok(&self) -> bool {
        self.errors.is_empty() && self.cases.iter().all(Case::ok)
    }

    /// The cases that ran; what went wrong outside any case counts as one more failure.
    pub fn count(&self) -> Count {
        let mut count = Count::default();
        for case in &self.cases {
            match case.outcome {
                Outcome::Passed => count.passed += 1,
                Outcome::Skipped(_) => count.skipped += 1,
                Outcome::Failed(..) | Outcome::Running => count.failed += 1,
            }
        }
        if count.failed == 0 && !self.ok() {
            count.failed = 1;
        }
        count
    }

    /// No case of the image matched.
    pub fn matched_nothing(&self) -> bool {
        self.plan == Some((0, 0)) && self.cases.is_empty()
    }

    /// The cases that are not skipped, in their order.
    fn started(&self) -> impl Iterator<Item = &Case> {
        let cases = self.cases.iter();
        cases.filter(|case| !matches!(case.outcome, Outcome::Skipped(_)))
    }

    /// How many cases were begun.
    pub fn begun(&self) -> usize {
        self.started().count()
    }

    /// The case begun and not ended, if any.
    pub fn running(&self) -> Option<&Case> {
        self.cases
            .iter()
            .find(|case| case.outcome == Outcome::Running)
    }

    /// How far the run has come, for people.
    pub fn progress(&self) -> String {
        match self.plan {
            Some((cases, _)) => format!("case {} of {cases}", self.begun()),
            None => "before the plan".to_owned(),
        }
    }

    /// The `k`-th case begun.
    pub fn nth_begun(&self, k: usize) -> Option<&Case> {
        self.started().nth(k)
    }

    /// Takes a record of the image in. `place` names the source of an address.
    ///
    /// # Errors
    /// If it is none.
    pub(crate) fn record(
        &mut self,
        line: &str,
        place: &dyn Fn(u64) -> String,
    ) -> Result<(), String> {
        let record = Record::parse(line)?;
        let (text, number) = (|key| record.text(key), |key| record.value::<u32>(key));
        match record.kind {
            "plan" => {
                self.plan = Some((number("cases")?, number("skipped")?));
                self.planned(number("cores")?, number("seed")?);
            }
            "begin" => self.case(text("case")?, Outcome::Running),
            "skip" => self.case(text("case")?, Outcome::Skipped(text("needs")?)),
            "note" => self.notes.push(Note {
                case: text("case")?,
                core: number("core")?,
                what: text("what")?,
                value: text("value")?,
            }),
            "fail" => {
                let how = format!("failed on core {}: {}", number("core")?, text("why")?);
                self.fail(&text("case")?, "FAIL", how);
            }
            "end" => {
                let instructions = record.value("instructions").ok();
                self.end(&text("case")?, record.value("ok")?, instructions);
            }
            "trap" => {
                let (core, what, cause) = (number("core")?, text("what")?, record.word("cause")?);
                let (pc, value) = (record.word("pc")?, record.word("value")?);
                let how = format!(
                    "trapped on core {core}: {what} (cause {cause}) at {} (pc {pc:#x}, value {value:#x})",
                    place(pc)
                );
                self.fail(&text("case")?, "TRAP", how);
            }
            "panic" => {
                let (core, at, what) = (number("core")?, text("at")?, text("what")?);
                let how = format!("panicked on core {core} at {at}: {what}");
                self.fail(&text("case")?, "PANIC", how);
            }
            "list" => self.listed.push(Listed {
                case: text("case")?,
                min: number("min")?,
                max: number("max")?,
            }),
            "stack" => self.stack = Some((number("used")?, number("of")?)),
            _ => self.done = Some(number("failed")?),
        }
        Ok(())
    }

    fn planned(&mut self, cores: u32, seed: u32) {
        for (what, asked, has) in [("cores", self.cores, cores), ("seed", self.seed, seed)] {
            if asked != has {
                let why = format!("{what}: {asked} asked for, but the image has {has}");
                self.errors.push(why);
            }
        }
    }

    fn case(&mut self, name: String, outcome: Outcome) {
        self.cases.push(Case {
            name,
            over: outcome != Outcome::Running,
            outcome,
            instructions: None,
        });
    }

    fn end(&mut self, name: &str, ok: bool, instructions: Option<u64>) {
        let Some(case) = self.cases.iter_mut().rfind(|case| case.name == name) else {
            self.errors
                .push(format!("case {name} ended without having begun"));
            return;
        };
        // Without -icount the guest's counter shows host time.
        case.instructions = instructions.filter(|_| !self.parallel);
        case.over = true;
        match (&case.outcome, ok) {
            (Outcome::Running, true) => case.outcome = Outcome::Passed,
            (Outcome::Running, false) => {
                let cores = self.cores;
                let why = format!("failed on one of {cores} cores, none of which said why");
                self.fail(name, "FAIL", why);
            }
            // A failure reported before stands, whatever the end says.
            _ => {}
        }
    }

    /// A case has failed. The first failure decides its outcome; each is reported.
    fn fail(&mut self, name: &str, word: &'static str, how: String) {
        // A dying core may not know the case (it says `-` or `?`); then it is the one that runs.
        let known = self.cases.iter().any(|case| case.name == name);
        let running = self.running().map(|case| case.name.clone());
        let name = &*running
            .filter(|_| !known)
            .unwrap_or_else(|| name.to_owned());
        let how = format!("case {name} {how}");
        match self.cases.iter_mut().rfind(|case| case.name == name) {
            Some(case) if matches!(case.outcome, Outcome::Failed(..)) => {}
            Some(case) => case.outcome = Outcome::Failed(word, how.clone()),
            None => {}
        }
        self.errors.push(how);
    }

    /// Judges the run once QEMU is gone. `broken` log frames could not be decoded: a dying core may
    /// cut off the frame of another, but without a death it must not happen.
    pub fn finish(&mut self, exit: &Exit, broken: u32) {
        if broken > 0 && self.errors.is_empty() {
            self.errors.push(format!(
                "{broken} log frames could not be decoded: did two cores write to the UART at once?"
            ));
        }
        match exit {
            Exit::Hung(what) => match self.running().map(|case| case.name.clone()) {
                Some(name) => self.fail(&name, "HUNG", format!("hung: {what}")),
                None => self
                    .errors
                    .push(format!("hung {}: {what}", self.whereabouts())),
            },
            Exit::Ended { status, stderr } => self.ended(*status, stderr.trim()),
        }
        self.cases.iter_mut().for_each(|case| case.over = true);
        let planned = self.plan.map_or(0, |(cases, _)| cases as usize);
        let left = planned.saturating_sub(self.begun());
        if left > 0 {
            self.errors
                .push(format!("{left} of {planned} planned cases did not run"));
        }
    }

    fn ended(&mut self, status: Option<i32>, stderr: &str) {
        let well = status == Some(0);
        let status = status.map_or("a signal".to_owned(), |status| format!("status {status}"));
        let mut exited = format!("QEMU exited with {status}");
        if !stderr.is_empty() {
            exited += &format!("; it said: {stderr}");
        }
        if let Some(name) = self.running().map(|case| case.name.clone()) {
            let cores = self.cores;
            let how = format!(
                "fell silent before it ended, and none of its {cores} cores said why: {exited}"
            );
            return self.fail(&name, "SILENT", how);
        }
        let wrong = match (self.done, self.plan) {
            _ if !self.errors.is_empty() => None,
            _ if self.plain => (!well).then_some(exited),
            (None, _) => Some(format!(
                "the image fell silent {}: {exited}",
                self.whereabouts()
            )),
            _ if !well => Some(format!("every case passed, but {exited}")),
            (Some(1..), _) => Some("the image counts failures that it has not reported".to_owned()),
            (_, None) => Some("the image is done without having announced a plan".to_owned()),
            _ => None,
        };
        self.errors.extend(wrong);
    }

    /// Between which cases the image is.
    fn whereabouts(&self) -> String {
        match (self.cases.last(), self.plan) {
            (Some(case), _) => format!("after case {}", case.name),
            (None, Some(_)) => "before its first case".to_owned(),
            (None, None) => "before it announced a plan".to_owned(),
        }
    }
}

impl Case {
    pub fn ok(&self) -> bool {
        matches!(self.outcome, Outcome::Passed | Outcome::Skipped(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAN: Exit = Exit::Ended {
        status: Some(0),
        stderr: String::new(),
    };

    /// Feeds lines to a run of 8 cores and ends it.
    fn run(lines: &[&str], exit: &Exit) -> Run {
        let mut run = Run::new(8, 0);
        for line in lines {
            run.record(line, &|pc| format!("f (a.rs:{pc})")).unwrap();
        }
        run.finish(exit, 0);
        run
    }

    const PLAN: &str = "@plan cores=8 cases=1 skipped=0 seed=0";
    const BEGIN: &str = "@begin case=a";
    const END: &str = "@end case=a ok=true instructions=5";
    const DONE: &str = "@done passed=1 failed=0 skipped=0";

    #[test]
    fn a_complete_run_passes() {
        let run = run(&[PLAN, BEGIN, END, DONE], &CLEAN);
        assert!(run.ok(), "{:?}", run.errors);
        assert_eq!(run.cases[0].instructions, Some(5));
    }

    #[test]
    fn a_case_is_over_once_it_has_ended_or_the_run_has() {
        let mut run = Run::new(8, 0);
        let mut over = |line| {
            run.record(line, &|_| String::new()).unwrap();
            run.cases.iter().filter(|case| case.over).count()
        };
        assert_eq!([PLAN, BEGIN].map(&mut over), [0, 0]);
        assert_eq!(over("@fail case=a core=3 why=3 is not 4"), 0);
        assert_eq!(over("@end case=a ok=false instructions=5"), 1);
        assert_eq!(over("@skip case=b needs=2..2"), 2);
        assert_eq!(over("@begin case=c"), 2);
        run.finish(&CLEAN, 0);
        assert!(run.cases.iter().all(|case| case.over));
    }

    /// Images that are broken in these ways: `cargo xtask selftest`.
    #[test]
    fn whatever_is_missing_fails() {
        let status = Exit::Ended {
            status: Some(3),
            stderr: String::new(),
        };
        let hung = Exit::Hung("core 3 still runs".to_owned());
        let fail = "@fail case=a core=3 why=3 is not 4";
        let not_ok = "@end case=a ok=false instructions=5";
        let trap = "@trap core=2 cause=5 pc=0x10 value=0x8 case=a what=load access fault";
        let panic = "@panic core=1 case=? at=a.rs:7 what=no";
        for (lines, exit, told) in [
            (&[PLAN, BEGIN, END][..], &CLEAN, "fell silent after case a"),
            (&[PLAN, BEGIN], &CLEAN, "case a fell silent"),
            (&[PLAN], &CLEAN, "before its first case"),
            (&[], &CLEAN, "before it announced a plan"),
            (&[PLAN, DONE], &CLEAN, "1 of 1 planned cases did not run"),
            (&[BEGIN, END, DONE], &CLEAN, "without having announced"),
            (&[PLAN, BEGIN, END, DONE], &status, "exited with status 3"),
            (
                &[PLAN, BEGIN, fail, not_ok, DONE],
                &CLEAN,
                "case a failed on core 3: 3 is not 4",
            ),
            (
                &[PLAN, BEGIN, trap],
                &status,
                "fault (cause 5) at f (a.rs:16) (pc 0x10, value 0x8)",
            ),
            (&[PLAN, BEGIN], &hung, "case a hung: core 3 still runs"),
            (
                &[PLAN, BEGIN, panic],
                &CLEAN,
                "case a panicked on core 1 at a.rs:7: no",
            ),
        ] {
            let Run { errors, .. } = run(lines, exit);
            assert!(errors[0].contains(told), "{errors:?}");
            let explained = told.starts_with("case a") || told.starts_with("fault");
            assert!(errors.len() == 1 || !explained, "{errors:?}");
        }
    }

    #[test]
    fn undecodable_frames_fail_the_run() {
        let mut run = run(&[PLAN, BEGIN, END, DONE], &CLEAN);
        run.finish(&CLEAN, 2);
        assert!(!run.ok());
    }

    /// A run whose cases ended so, with trouble of its own or none.
    fn with(outcomes: Vec<Outcome>, errors: &[&str]) -> Run {
        let case = |outcome| Case {
            name: "a".to_owned(),
            outcome,
            instructions: None,
            over: true,
        };
        Run {
            cases: outcomes.into_iter().map(case).collect(),
            errors: errors.iter().map(|&error| error.to_owned()).collect(),
            ..Run::new(8, 0)
        }
    }

    #[test]
    fn trouble_outside_of_any_case_is_one_failure() {
        let failed = || Outcome::Failed("HUNG", "no".to_owned());
        let skipped = || Outcome::Skipped("2..4".to_owned());
        for (outcomes, errors, passed, failed) in [
            (vec![Outcome::Passed, skipped()], &[][..], 1, 0),
            (vec![Outcome::Passed], &["QEMU exited with 3"], 1, 1),
            (vec![], &["fell silent"], 0, 1),
            (vec![failed(), Outcome::Running], &["a", "b"], 0, 2),
        ] {
            let count = with(outcomes, errors).count();
            assert_eq!((count.passed, count.failed), (passed, failed), "{errors:?}");
        }
    }
}
