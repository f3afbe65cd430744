//! Ordinary programs work.

use toolrest_sandbox::{Exit, Job, Limits};

use crate::fixture::{Fixture, limits};

#[tokio::test]
async fn a_program_returns_both_streams_and_its_exit_code() {
    let report = Fixture::new().bash("echo out; echo err >&2; exit 7").await;
    assert_eq!(report.exit, Exit::Code(7));
    assert_eq!((report.stdout.text().as_str(), report.stderr.text().as_str()), ("out\n", "err\n"));
    assert_eq!(report.limit_hit, None);
}

#[tokio::test]
async fn written_files_stay_and_belong_to_the_owner_of_the_folder() {
    use std::os::unix::fs::MetadataExt;
    let fixture = Fixture::new();
    fixture.bash("mkdir -p a/b && echo kept > a/b/c && chmod 700 a").await;
    let file = fixture.folder().join("a/b/c");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept\n");
    let owner = std::fs::metadata(fixture.folder()).unwrap();
    let file = std::fs::metadata(file).unwrap();
    assert_eq!((file.uid(), file.gid()), (owner.uid(), owner.gid()));
}

#[tokio::test]
async fn the_environment_contains_only_the_given_variables() {
    let fixture = Fixture::new();
    let spec = fixture.spec().env("GREETING", "hello world");
    let report = fixture.run(Job::new(spec, ["/usr/bin/env"])).await;
    let mut lines: Vec<String> = report.stdout.text().lines().map(str::to_owned).collect();
    lines.sort();
    let wanted = ["GREETING=hello world", "HOME=/workspace", "LANG=C.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin"];
    assert_eq!(lines, [&wanted[..], &["TMPDIR=/tmp"]].concat());
}

#[tokio::test]
async fn git_commits() {
    let code = "git init -q . && git config user.email a@b && git config user.name n && echo x > f && git add f \
                && git commit -qm first && git log --oneline | wc -l && git status --short | wc -l";
    let report = Fixture::new().bash(code).await;
    assert_eq!(report.stdout.text(), "1\n0\n", "{}", report.stderr.text());
}

#[tokio::test]
async fn gcc_compiles_and_the_program_runs() {
    let code = "printf '#include <stdio.h>\\nint main(void){puts(\"compiled\");return 3;}' > m.c && gcc -O1 m.c -o m \
                && ./m";
    let report = Fixture::new().bash(code).await;
    assert_eq!((report.exit, report.stdout.text().as_str()), (Exit::Code(3), "compiled\n"), "{}", report.stderr.text());
}

#[tokio::test]
async fn node_runs_a_script_with_workers() {
    let fixture = Fixture::new();
    let code = "const { Worker, isMainThread, parentPort } = require('worker_threads');\
                if (isMainThread) { new Worker(__filename).on('message', m => console.log('worker', m)); }\
                else { parentPort.postMessage([1, 2, 3].map(x => x * 2).join()); }";
    std::fs::write(fixture.folder().join("main.js"), code).unwrap();
    let spec = fixture.spec().limits(Limits { memory_bytes: 1 << 30, ..limits() });
    let report = fixture.run(Job::new(spec, ["node", "main.js"])).await;
    assert_eq!(report.stdout.text(), "worker 2,4,6\n", "{}", report.stderr.text());
}

#[tokio::test]
async fn python_runs_multiple_processes() {
    let fixture = Fixture::new();
    let code = "import multiprocessing as m\ndef f(x): return x * x\nif __name__ == '__main__':\n    \
                print(sum(m.Pool(4).map(f, range(100))))";
    std::fs::write(fixture.folder().join("pool.py"), code).unwrap();
    let report = fixture.bash("python3 pool.py").await;
    assert_eq!(report.stdout.text(), "328350\n", "{}", report.stderr.text());
}

#[tokio::test]
async fn sqlite_works() {
    let code = "sqlite3 d.db 'pragma journal_mode=wal; create table t(x); insert into t values(1),(2);' \
                && sqlite3 d.db 'select sum(x) from t'";
    let report = Fixture::new().bash(code).await;
    assert_eq!(report.stdout.text(), "wal\n3\n", "{}", report.stderr.text());
}

#[tokio::test]
async fn tar_packs_and_unpacks() {
    let code = "mkdir d && head -c 100000 /dev/urandom > d/f && ln -s f d/l && tar czf d.tgz d && mkdir o \
                && tar xzf d.tgz -C o && cmp d/f o/d/f && readlink o/d/l";
    let report = Fixture::new().bash(code).await;
    assert_eq!(report.stdout.text(), "f\n", "{}", report.stderr.text());
}

#[tokio::test]
async fn a_shell_finds_its_streams_by_name() {
    let code = "echo e > /dev/stderr; echo o > /dev/stdout; cat /dev/stdin; cat <(echo substituted)";
    let report = Fixture::new().bash(code).await;
    assert_eq!((report.stdout.text().as_str(), report.stderr.text().as_str()), ("o\nsubstituted\n", "e\n"));
}

#[tokio::test]
async fn thirty_two_concurrent_jobs_succeed() {
    let fixture = Fixture::new();
    let mut jobs = Vec::new();
    for number in 0..32 {
        let job = Job::new(fixture.spec(), ["bash", "-c", &format!("echo {number}")]);
        jobs.push(fixture.sandbox.spawn(job).await.unwrap());
    }
    for (number, job) in jobs.into_iter().enumerate() {
        let report = job.wait().await.unwrap();
        assert_eq!(report.stdout.text(), format!("{number}\n"), "{}", report.stderr.text());
    }
}
