//! Whatever a program does to its view, the folder becomes the same.

use crate::folders::{Pair, Random};
use crate::programs::{run, runnable, tree};
use crate::test_workspace::TestWorkspace;
use toolrest_core::KeepLimits;

const ROUNDS: usize = 60;

/// Whether programs make links too, which have no history.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Links {
    Some,
    None,
}

/// Something that a program may try.
fn attempt(random: &mut Random, links: Links) -> String {
    let (one, other, number) = (random.path(), random.path(), random.below(20));
    let (one, other) = (one.without_slash(), other.without_slash());
    match random.below(if links == Links::Some { 12 } else { 10 }) {
        0..=2 => format!("mkdir -p $(dirname {one}); echo {number} > {one}"),
        3 => format!("echo {number} >> {one}"),
        4 => format!("rm -rf {one}"),
        5..=6 => format!("mv -T {one} {other}"),
        7 => format!("rm -rf {one}; mkdir -p {one}"),
        8 => format!("chmod a+x {one}"),
        9 => format!("cp -r {one} {other}"),
        _ => format!("rm -rf {one}; ln -s {other} {one}"),
    }
}

async fn any_program(seed: u64, links: Links) {
    let pair = Pair::of(&TestWorkspace::on_sqlite().await).await;
    let folder = pair.root.path();
    let mut random = Random(seed);
    let mut undone = 0;
    for round in 0..ROUNDS {
        let count = 1 + random.below(8);
        let attempts: Vec<String> =
            (0..count).map(|_| format!("({}) 2>/dev/null || true", attempt(&mut random, links))).collect();
        let script = attempts.join("; ");
        let before = (tree(folder), runnable(folder));
        let copy = tempfile::tempdir().unwrap();
        let mut checkout = pair.check_out(KeepLimits::default()).await;
        run(&checkout.execution_root(), &format!("{script}; cp -a . {}", copy.path().display()));
        let done = checkout.check_in(&pair.cx(pair.in_folder).await).await;
        let done = done.unwrap_or_else(|error| panic!("round {round}: {error:?} of {script} on {before:?}"));
        assert_eq!(tree(folder), tree(copy.path()), "round {round}: {script} on {before:?}: {done:?}");
        assert_eq!(runnable(folder), runnable(copy.path()), "round {round}: {script} on {before:?}: {done:?}");
        assert_eq!(done.conflicts, [], "round {round}: {script}");
        if done.commit.is_some() && links == Links::None && random.below(3) == 0 {
            let undo = pair.undo(pair.in_folder).await;
            undo.unwrap_or_else(|error| panic!("round {round}: {error:?} of {script} on {before:?}: {done:?}"));
            assert_eq!((tree(folder), runnable(folder)), before, "round {round}: undo of {script}: {done:?}");
            undone += 1;
        }
    }
    assert!(links == Links::Some || undone > 5, "{undone}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_becomes_what_a_program_made_of_its_view_and_back() {
    any_program(1, Links::None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_with_links_becomes_what_a_program_made_of_its_view() {
    any_program(2, Links::Some).await;
}
