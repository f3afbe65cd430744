//! Standard input and output of jobs.

use std::{fs, time::Duration};

use toolrest_sandbox::{Job, Limit, Limits, Stdin, Stream};

use crate::fixture::{Fixture, limits};

#[tokio::test]
async fn output_arrives_while_the_program_runs() {
    let fixture = Fixture::new();
    let code = "echo first; read line; echo \"got $line\" >&2";
    let job = Job::new(fixture.spec(), ["bash", "-c", code]).stdin(Stdin::Open);
    let mut running = fixture.sandbox.spawn(job).await.unwrap();
    let first = running.next().await.unwrap();
    assert_eq!((first.stream, first.bytes.as_slice()), (Stream::Stdout, &b"first\n"[..]));
    let mut input = running.take_input().unwrap();
    input.write(b"answer\n").await.unwrap();
    let second = running.next().await.unwrap();
    assert_eq!((second.stream, second.bytes.as_slice()), (Stream::Stderr, &b"got answer\n"[..]));
    assert!(running.wait().await.unwrap().success());
}

#[tokio::test]
async fn input_of_any_length_arrives_complete() {
    let fixture = Fixture::new();
    for size in [0, 1, 5000, 3 << 20] {
        let job = Job::new(fixture.spec(), ["wc", "-c"]).stdin(Stdin::Bytes(vec![b'x'; size]));
        assert_eq!(fixture.run(job).await.stdout.text(), format!("{size}\n"));
    }
}

#[tokio::test]
async fn a_program_that_ignores_its_input_succeeds() {
    let fixture = Fixture::new();
    let job = Job::new(fixture.spec(), ["true"]).stdin(Stdin::Bytes(vec![b'x'; 3 << 20]));
    assert!(fixture.run(job).await.success());
}

#[tokio::test]
async fn long_output_is_cut_in_the_middle_and_uses_little_memory() {
    let fixture = Fixture::new();
    let kept = 10_000;
    let spec = fixture.spec().limits(Limits { output_kept_bytes: kept, ..limits() });
    let code = "printf start; head -c 200M /dev/zero; printf '\\377\\376end'";
    let before = peak_memory();
    let report = fixture.run(Job::new(spec, ["bash", "-c", code])).await;
    assert!(report.success(), "{:?}", report.limit_hit);
    let text = report.stdout.text();
    assert!(text.starts_with("start\0") && text.ends_with("\u{fffd}\u{fffd}end"), "{}", text.len());
    assert_eq!(report.stdout.total_bytes(), (200 << 20) + 10);
    assert_eq!(report.stdout.cut_bytes(), report.stdout.total_bytes() - kept as u64);
    assert!(text.contains(&format!("{} bytes cut", report.stdout.cut_bytes())), "{}", text.len());
    // Other tests run at the same time. Output that is kept completely would still exceed this.
    assert!(peak_memory() - before < 100 << 20);
}

/// Returns the peak memory of this process.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
}

#[tokio::test]
async fn endless_output_ends_the_job() {
    let fixture = Fixture::new();
    let spec = fixture.spec().limits(Limits { output_bytes: 10 << 20, ..limits() });
    let report = fixture.run(Job::new(spec, ["bash", "-c", "yes | tee /dev/stderr"])).await;
    assert_eq!(report.limit_hit, Some(Limit::Output));
    assert!(report.duration < Duration::from_secs(10), "{:?}", report.duration);
    let printed = report.stdout.total_bytes() + report.stderr.total_bytes();
    assert!((10 << 20..11 << 20).contains(&printed), "{printed}");
}

#[tokio::test]
async fn a_program_blocks_while_its_output_is_not_read() {
    let fixture = Fixture::new();
    let code = "head -c 10M /dev/zero; echo > after";
    let mut running = fixture.sandbox.spawn(Job::new(fixture.spec(), ["bash", "-c", code])).await.unwrap();
    running.next().await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!fixture.folder().join("after").exists());
    assert!(running.wait().await.unwrap().success());
    assert!(fixture.folder().join("after").exists());
}
