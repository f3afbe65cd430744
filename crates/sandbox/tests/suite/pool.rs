//! Idle interpreters.

use std::{ffi::OsString, fs, os::unix::ffi::OsStringExt, time::Duration};

use toolrest_sandbox::{
    Access, CellSpec, Exit, Interpreter, Language, Limit, Limits, Mount, Pool, PoolOptions, Report, Script, Stdin,
};

use crate::fixture::{Fixture, limits, processes_with, source, until};

struct WarmPool {
    fixture: Fixture,
    pool: Pool,
}

impl WarmPool {
    fn new() -> Self {
        let fixture = Fixture::new();
        let pool = Pool::new(fixture.sandbox.clone(), PoolOptions::default());
        Self { fixture, pool }
    }

    async fn run(&self, language: Language, script: Script) -> Report {
        let interpreter = Interpreter::find(language).unwrap();
        self.pool.run(&self.fixture.spec(), &interpreter, script).await.unwrap().wait().await.unwrap()
    }

    /// Runs a script twice, in a new interpreter and in an idle one, and compares the results.
    async fn twice(&self, language: Language, script: Script) -> Report {
        let interpreter = Interpreter::find(language).unwrap();
        self.pool.evict_folder(&self.fixture.folder());
        let cold = self.run(language, script.clone()).await;
        until("another one to wait", || self.pool.idle_count() == 1).await;
        let warm = self.run(language, script).await;
        assert_eq!(
            (cold.exit, cold.stdout.text(), cold.stderr.text()),
            (warm.exit, warm.stdout.text(), warm.stderr.text())
        );
        self.pool.warm(&self.fixture.spec(), &interpreter).await.unwrap();
        warm
    }
}

fn script(code: &str) -> Script {
    Script {
        code: code.into(),
        arguments: vec!["first arg".into(), "it's".into()],
        env: vec![("NAME".into(), "a 'value'\n".into())],
        stdin: Stdin::Bytes(b"typed".to_vec()),
    }
}

#[tokio::test]
async fn python_runs_the_same_idle_and_new() {
    let code = "import sys, os\nprint(sys.argv[1:], os.environ['NAME'], sys.stdin.read(), __name__, os.getcwd())\n\
                print(sorted(n for n in globals() if not n.startswith('__')))\nsys.exit(3)";
    let report = WarmPool::new().twice(Language::Python, script(code)).await;
    assert_eq!(report.exit, Exit::Code(3), "{}", report.stderr.text());
    assert_eq!(report.stdout.text(), "['first arg', \"it's\"] a 'value'\n typed __main__ /workspace\n['os', 'sys']\n");
}

#[tokio::test]
async fn a_traceback_shows_only_the_script() {
    let warm = WarmPool::new();
    let report = warm.twice(Language::Python, script("def f():\n    return 1 / 0\nf()")).await;
    assert_eq!(report.exit, Exit::Code(1));
    let error = report.stderr.text();
    assert!(error.contains("<code>\", line 3") && error.contains("return 1 / 0"), "{error}");
    assert!(error.ends_with("ZeroDivisionError: division by zero\n") && !error.contains("_begin"), "{error}");
    let report = warm.twice(Language::Python, script("x = = 1")).await;
    let error = report.stderr.text();
    assert!(error.contains("line 1") && error.contains("SyntaxError") && !error.contains("_begin"), "{error}");
}

#[tokio::test]
async fn python_pickles_its_own_functions() {
    let code = "from __future__ import annotations\nimport multiprocessing as m\ndef f(x): return x + 1\n\
                print(m.Pool(2).map(f, [1, 2]))";
    assert_eq!(WarmPool::new().twice(Language::Python, script(code)).await.stdout.text(), "[2, 3]\n");
}

#[tokio::test]
async fn bash_runs_the_same_idle_and_new() {
    let code = "echo \"$1|$2|$NAME|$(cat)\"; pwd\nls /proc/self/fd | wc -l\nfalse_command; exit 4";
    let report = WarmPool::new().twice(Language::Bash, script(code)).await;
    assert_eq!(report.exit, Exit::Code(4));
    assert_eq!(report.stdout.text(), "first arg|it's|a 'value'\n|typed\n/workspace\n4\n");
    assert!(report.stderr.text().contains("line 3: false_command"), "{}", report.stderr.text());
}

#[tokio::test]
async fn bash_errors_show_only_the_faulty_line() {
    let warm = WarmPool::new();
    let report = warm.twice(Language::Bash, script("if then fi")).await;
    let error = report.stderr.text();
    assert!(error.contains("line 1: `if then fi'") && !error.contains("set --"), "{error}");
    let report = warm.twice(Language::Bash, script("echo $LINENO\n\nif then fi")).await;
    let error = report.stderr.text();
    assert_eq!(report.stdout.text(), "1\n");
    assert!(error.contains("line 3: `if then fi'"), "{error}");
    let bare = Script { code: b"echo $LINENO $# $-\n\nif then fi".to_vec(), ..Script::default() };
    let report = warm.twice(Language::Bash, bare).await;
    let error = report.stderr.text();
    assert_eq!(report.stdout.text(), "1 0 hBc\n");
    assert!(error.contains("line 3: `if then fi'") && !error.contains("eval"), "{error}");
}

#[tokio::test]
async fn bash_scripts_see_nothing_of_the_set_up() {
    let code = "echo \"${REPLY-unset} $# $(cat)\"; read -r <<< again; echo $REPLY; exec 3>&1; echo three >&3";
    let report = WarmPool::new().twice(Language::Bash, script(code)).await;
    assert_eq!(report.stdout.text(), "unset 2 typed\nagain\nthree\n", "{}", report.stderr.text());
    let variables = vec![("REPLY".into(), OsString::from_vec(b"  a\\b \xff\n".to_vec()))];
    let report = WarmPool::new()
        .twice(Language::Bash, Script { env: variables, ..script("printf %s \"$REPLY\" | od -An -tx1") })
        .await;
    assert_eq!(report.stdout.text(), " 20 20 61 5c 62 20 ff 0a\n", "{}", report.stderr.text());
}

#[tokio::test]
async fn start_up_variables_take_effect() {
    let warm = WarmPool::new();
    let with = |name: &str, value: &str, code: &str| Script { env: vec![(name.into(), value.into())], ..script(code) };
    let code = "import sys; print(sys.flags.optimize)";
    let report = warm.twice(Language::Python, script(code)).await;
    assert_eq!(report.stdout.text(), "0\n", "{}", report.stderr.text());
    let report = warm.run(Language::Python, with("PYTHONOPTIMIZE", "2", code)).await;
    assert_eq!(report.stdout.text(), "2\n", "{}", report.stderr.text());
    let code = "import time; print(time.strftime('%H', time.localtime(0)))";
    assert_eq!(warm.run(Language::Python, with("TZ", "XYZ-5", code)).await.stdout.text(), "05\n");
    let report = warm.run(Language::Bash, with("LC_ALL", "C", "x=ä; echo ${#x} $LC_ALL")).await;
    assert_eq!(report.stdout.text(), "2 C\n", "{}", report.stderr.text());
    let report = warm.run(Language::Bash, with("SHELLOPTS", "noglob", "echo *")).await;
    assert_eq!(report.stdout.text(), "*\n", "{}", report.stderr.text());
}

#[tokio::test]
async fn long_scripts_arrive_complete() {
    let code = format!("x = '{}'\nprint(len(x))", "y".repeat(1 << 20));
    assert_eq!(WarmPool::new().twice(Language::Python, script(&code)).await.stdout.text(), "1048576\n");
    let code = format!("x='{}'\necho ${{#x}}", "y".repeat(1 << 20));
    assert_eq!(WarmPool::new().twice(Language::Bash, script(&code)).await.stdout.text(), "1048576\n");
}

#[tokio::test]
async fn scripts_leave_no_state_for_the_next() {
    let warm = WarmPool::new();
    let code = "import os, builtins; builtins.left = 1; open('/tmp/left', 'w').close(); os.environ['LEFT'] = '1'";
    assert!(warm.run(Language::Python, script(code)).await.success());
    until("another one to wait", || warm.pool.idle_count() == 1).await;
    let code = "import os, builtins; print(hasattr(builtins, 'left'), os.listdir('/tmp'), 'LEFT' in os.environ)";
    assert_eq!(warm.run(Language::Python, script(code)).await.stdout.text(), "False [] False\n");
}

#[tokio::test]
async fn the_clock_starts_with_the_script() {
    let warm = WarmPool::new();
    let interpreter = Interpreter::find(Language::Python).unwrap();
    let spec = warm.fixture.spec().limits(Limits { wall: Duration::from_millis(600), ..limits() });
    warm.pool.warm(&spec, &interpreter).await.unwrap();
    tokio::time::sleep(Duration::from_millis(700)).await;
    let run = async |code: &str| warm.pool.run(&spec, &interpreter, script(code)).await.unwrap().wait().await.unwrap();
    assert_eq!(run("print('in time')").await.stdout.text(), "in time\n");
    assert_eq!(run("import time; time.sleep(60)").await.limit_hit, Some(Limit::Time));
}

#[tokio::test]
async fn a_replaced_folder_is_mounted_again() {
    let warm = WarmPool::new();
    let interpreter = Interpreter::find(Language::Bash).unwrap();
    warm.pool.warm(&warm.fixture.spec(), &interpreter).await.unwrap();
    fs::rename(warm.fixture.folder(), warm.fixture.home.path().join("aside")).unwrap();
    fs::create_dir(warm.fixture.folder()).unwrap();
    fs::write(warm.fixture.folder().join("fresh"), "").unwrap();
    assert_eq!(warm.run(Language::Bash, script("ls")).await.stdout.text(), "fresh\n");
}

#[tokio::test]
async fn entries_replaced_while_an_interpreter_was_idle_are_frozen() {
    let warm = WarmPool::new();
    fs::create_dir(warm.fixture.folder().join(".git")).unwrap();
    let (source, target) = (source(warm.fixture.folder()), "/workspace".into());
    let mount = Mount::Folder { source, target, access: Access::ReadWrite, frozen: vec![".git".into()] };
    let spec = CellSpec { mounts: vec![mount], ..warm.fixture.spec() };
    let interpreter = Interpreter::find(Language::Bash).unwrap();
    warm.pool.warm(&spec, &interpreter).await.unwrap();
    fs::rename(warm.fixture.folder().join(".git"), warm.fixture.folder().join("before")).unwrap();
    fs::create_dir(warm.fixture.folder().join(".git")).unwrap();
    let running = warm.pool.run(&spec, &interpreter, script("touch .git/config || echo refused")).await.unwrap();
    assert_eq!(running.wait().await.unwrap().stdout.text(), "refused\n");
}

#[tokio::test]
async fn idle_interpreters_are_limited_in_number_and_time() {
    let fixture = Fixture::new();
    let options = PoolOptions { max_idle: 2, idle_timeout: Duration::from_millis(300) };
    let pool = Pool::new(fixture.sandbox.clone(), options);
    let interpreter = Interpreter::find(Language::Bash).unwrap();
    for number in 0..4 {
        pool.warm(&fixture.spec().env("N", number.to_string()), &interpreter).await.unwrap();
    }
    assert_eq!(pool.idle_count(), 2);
    until("the waiting to be let go", || pool.idle_count() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_calls_start_one_idle_interpreter() {
    let warm = WarmPool::new();
    let interpreter = Interpreter::find(Language::Bash).unwrap();
    for _ in 0..20 {
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let (pool, spec, interpreter) = (warm.pool.clone(), warm.fixture.spec(), interpreter.clone());
            calls.spawn(async move { pool.warm(&spec, &interpreter).await.unwrap() });
        }
        calls.join_all().await;
        assert_eq!(warm.pool.idle_count(), 1);
        warm.pool.evict_folder(&warm.fixture.folder());
    }
}

#[tokio::test]
async fn an_idle_interpreter_is_isolated_like_any_job() {
    let code = "import os\nprint([os.path.exists(p) for p in ('/root', '/home', '/sys')], os.getuid())\n\
                print([l.split()[1] for l in open('/proc/self/status') if l.startswith(('CapBnd', 'Seccomp:', 'NoNewPrivs'))])";
    let report = WarmPool::new().twice(Language::Python, script(code)).await;
    assert_eq!(report.stdout.text(), "[False, False, False] 1000\n['0000000000000000', '1', '2']\n");
}

#[tokio::test]
async fn limits_apply_to_idle_interpreters() {
    let warm = WarmPool::new();
    let marker = format!("toolrest-marker-waiting-{}", std::process::id());
    // Python runs this at start-up, before it reads its script.
    let greedy = format!(
        "import subprocess\nsubprocess.Popen(['{marker}', '100'], executable='/usr/bin/sleep')\n\
         for i in range(20): open(f'f{{i}}', 'wb').write(bytes(20 << 20))\n"
    );
    let code = format!(
        "import pathlib, site\nfolder = pathlib.Path(site.getusersitepackages()); folder.mkdir(parents=True)\n\
         (folder / 'usercustomize.py').write_text({greedy:?})"
    );
    assert!(warm.run(Language::Python, script(&code)).await.success());
    until("another one to wait", || !processes_with(&marker).is_empty()).await;
    until("its end", || processes_with(&marker).is_empty()).await;
}

#[tokio::test]
async fn files_created_right_after_the_start_count() {
    let warm = WarmPool::new();
    let interpreter = Interpreter::find(Language::Bash).unwrap();
    warm.pool.warm(&warm.fixture.spec(), &interpreter).await.unwrap();
    // The files are empty at first, like files from before the job. Then they grow past the limit.
    let code = "for i in {1..20}; do : > f$i; done; sleep .2; for i in {1..20}; do head -c 60M /dev/zero > f$i; done";
    let report = warm.run(Language::Bash, Script { code: code.into(), ..Script::default() }).await;
    assert_eq!(report.limit_hit, Some(Limit::Disk), "{report:?}");
}
