//! The applications' own types as messages of the interface, and back. What cannot be read back is `None`, and counted by
//! whoever has got it.

use aquila_control::apps::election::Application;
use aquila_control::apps::front_end::{Operation, Program, Results};
use aquila_control::apps::instance::{Job, Name};
use aquila_control::apps::operator::Wish;
use aquila_control::apps::rows::{Admin, Outcome};
use aquila_control::nib::{Change, Changes, Fence, Key, Refused, Table, Write};

use crate::base::{Answer, Writing};
use crate::proto::control as proto;

/// A row's place.
#[must_use]
pub fn key(key: &Key) -> proto::Key {
    proto::Key { table: key.0 as u32, key: key.1.clone() }
}

fn from_key(key: Option<proto::Key>) -> Option<Key> {
    let key = key?;
    let table = *Table::ALL.get(usize::try_from(key.table).ok()?)?;
    Some((table, key.key))
}

/// An application by its number.
#[must_use]
pub fn application(number: u32) -> Option<Application> {
    Application::ALL.into_iter().find(|application| *application as u32 == number)
}

/// What an operator wants.
#[must_use]
pub fn wish(wish: Wish) -> proto::Wish {
    use proto::wish::What;
    let admin = |number, admin: Admin| proto::Admin { number, state: admin as u32 };
    let what = match wish {
        Wish::Tin(tin, state) => What::Tin(admin(tin.into(), state)),
        Wish::Link(link, state) => What::Link(admin(link, state)),
        Wish::Sidebands(tin, hosts) => {
            What::Sidebands(proto::Sidebands { tin: tin.into(), hosts: hosts.into() })
        }
    };
    proto::Wish { what: Some(what) }
}

/// The same, back.
#[must_use]
pub fn from_wish(wish: proto::Wish) -> Option<Wish> {
    use proto::wish::What;
    let state = |state: u32| Admin::decode(&[u8::try_from(state).ok()?]);
    Some(match wish.what? {
        What::Tin(admin) => Wish::Tin(admin.number.try_into().ok()?, state(admin.state)?),
        What::Link(admin) => Wish::Link(admin.number, state(admin.state)?),
        What::Sidebands(of) => Wish::Sidebands(of.tin.try_into().ok()?, of.hosts.try_into().ok()?),
    })
}

/// Operations on a TiN.
#[must_use]
pub fn program(program: Program) -> proto::Program {
    let operation = |operation: Operation| proto::Operation {
        key: Some(key(&operation.key)),
        version: operation.version,
        value: operation.value,
    };
    proto::Program {
        term: program.term,
        tin: program.tin.into(),
        operations: program.operations.into_iter().map(operation).collect(),
    }
}

/// The same, back.
#[must_use]
pub fn from_program(program: proto::Program) -> Option<Program> {
    let operation = |operation: proto::Operation| {
        let key = from_key(operation.key)?;
        Some(Operation { key, version: operation.version, value: operation.value })
    };
    Some(Program {
        term: program.term,
        tin: program.tin.try_into().ok()?,
        operations: program.operations.into_iter().map(operation).collect::<Option<_>>()?,
    })
}

/// What became of operations.
#[must_use]
pub fn results(results: Results) -> proto::Results {
    let result = |(at, version, outcome): (Key, u64, Outcome)| proto::Result {
        key: Some(key(&at)),
        version,
        outcome: outcome as u32,
    };
    let tin = results.tin.into();
    proto::Results { tin, results: results.results.into_iter().map(result).collect() }
}

/// The same, back.
#[must_use]
pub fn from_results(results: proto::Results) -> Option<Results> {
    let result = |result: proto::Result| {
        let all = [Outcome::Done, Outcome::Failed, Outcome::HeldBack, Outcome::Unreachable];
        let outcome = all.into_iter().find(|outcome| *outcome as u32 == result.outcome)?;
        Some((from_key(result.key)?, result.version, outcome))
    };
    Some(Results {
        tin: results.tin.try_into().ok()?,
        results: results.results.into_iter().map(result).collect::<Option<_>>()?,
    })
}

/// What somebody wants written.
#[must_use]
pub fn writing(writing: &Writing) -> proto::WriteRequest {
    let (batch, is_lease, writes) = match &writing.job {
        Job::Batch(number, writes) => (Some(*number), false, &writes[..]),
        Job::Rows(writes) => (None, false, &writes[..]),
        Job::Lease(write) => (None, true, std::slice::from_ref(write)),
    };
    let write = |write: &Write| proto::Write {
        key: Some(key(&write.key)),
        value: write.value.clone(),
        expected: write.expected,
    };
    proto::WriteRequest {
        application: writing.from.0 as u32,
        instance: writing.from.1.into(),
        id: writing.id,
        fence: writing
            .fence
            .as_ref()
            .map(|fence| proto::Fence { application: fence.application.clone(), term: fence.term }),
        batch,
        is_lease,
        writes: writes.iter().map(write).collect(),
    }
}

/// The same, back.
#[must_use]
pub fn from_writing(request: proto::WriteRequest) -> Option<Writing> {
    let from: Name = (application(request.application)?, request.instance.try_into().ok()?);
    let write = |write: proto::Write| {
        Some(Write { key: from_key(write.key)?, value: write.value, expected: write.expected })
    };
    let mut writes = request.writes.into_iter().map(write).collect::<Option<Vec<_>>>()?;
    let job = match (request.batch, request.is_lease) {
        (None, true) if writes.len() == 1 && writes[0].key.0 == Table::Lease => {
            Job::Lease(writes.remove(0))
        }
        (Some(number), false) => Job::Batch(number, writes),
        (None, false) => Job::Rows(writes),
        _ => return None,
    };
    let fence = request.fence.map(|f| Fence { application: f.application, term: f.term });
    // Whoever leads writes under a term; only leases are asked for without.
    (fence.is_some() != request.is_lease).then_some(Writing { from, id: request.id, fence, job })
}

/// What the base says to it.
#[must_use]
pub fn answer(answer: Answer) -> proto::WriteReply {
    use proto::write_reply::What;
    let what = match answer {
        Answer::Old => What::IsOld(true),
        Answer::Done(Ok(version)) => What::Version(version),
        Answer::Done(Err(Refused::Sequence { found, expected })) => {
            What::Sequence(proto::Sequence { found, expected })
        }
        Answer::Done(Err(Refused::Deposed { application, found, expected })) => {
            What::Deposed(proto::Deposed { application, found, expected })
        }
        Answer::Done(Err(Refused::Version { write, found, expected })) => {
            What::Mismatch(proto::Mismatch { write: write as u64, found, expected })
        }
    };
    proto::WriteReply { what: Some(what) }
}

/// The same, back.
#[must_use]
pub fn from_answer(reply: proto::WriteReply) -> Option<Answer> {
    use proto::write_reply::What;
    Some(match reply.what? {
        What::IsOld(_) => Answer::Old,
        What::Version(version) => Answer::Done(Ok(version)),
        What::Sequence(proto::Sequence { found, expected }) => {
            Answer::Done(Err(Refused::Sequence { found, expected }))
        }
        What::Deposed(proto::Deposed { application, found, expected }) => {
            Answer::Done(Err(Refused::Deposed { application, found, expected }))
        }
        What::Mismatch(proto::Mismatch { write, found, expected }) => {
            let write = write.try_into().ok()?;
            Answer::Done(Err(Refused::Version { write, found, expected }))
        }
    })
}

/// What a subscriber gets.
#[must_use]
pub fn changes(changes: Changes) -> proto::Changes {
    let change = |change: Change| proto::Change {
        version: change.version,
        key: Some(key(&change.key)),
        value: change.value,
    };
    proto::Changes {
        is_everything: changes.is_everything,
        version: changes.version,
        layout: changes.layout,
        changes: changes.changes.into_iter().map(change).collect(),
    }
}

/// The same, back.
#[must_use]
pub fn from_changes(changes: proto::Changes) -> Option<Changes> {
    let change = |change: proto::Change| {
        Some(Change { version: change.version, key: from_key(change.key)?, value: change.value })
    };
    Some(Changes {
        is_everything: changes.is_everything,
        version: changes.version,
        layout: changes.layout,
        changes: changes.changes.into_iter().map(change).collect::<Option<_>>()?,
    })
}
