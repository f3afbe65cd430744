//! Interpreters that wait for their script.

use std::{ffi::OsString, fs, os::unix::ffi::OsStringExt, time::Duration};

use toolrest_sandbox::{
    Access, Exit, Interpreter, Language, Limit, Limits, Mount, Place, Pool, PoolOptions, Report, Script, Stdin,
};

use crate::scene::{Scene, limits, processes_with, source, until};

struct Warm {
    scene: Scene,
    pool: Pool,
}

impl Warm {
    fn new() -> Self {
        let scene = Scene::new();
        let pool = Pool::new(scene.sandbox.clone(), PoolOptions::default());
        Self { scene, pool }
    }

    async fn run(&self, language: Language, script: Script) -> Report {
        let interpreter = Interpreter::find(language).unwrap();
        self.pool.run(&self.scene.place(), &interpreter, script).await.unwrap().wait().await.unwrap()
    }

    /// Runs a script twice: in an interpreter of its own, and in one that has waited.
    async fn twice(&self, language: Language, script: Script) -> Report {
        let interpreter = Interpreter::find(language).unwrap();
        self.pool.forget(&self.scene.folder());
        let cold = self.run(language, script.clone()).await;
        until("another one to wait", || self.pool.waiting() == 1).await;
        let warm = self.run(language, script).await;
        assert_eq!(
            (cold.exit, cold.stdout.text(), cold.stderr.text()),
            (warm.exit, warm.stdout.text(), warm.stderr.text())
        );
        self.pool.warm(&self.scene.place(), &interpreter).await.unwrap();
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
async fn python_runs_the_same_warm_and_cold() {
    let code = "import sys, os\nprint(sys.argv[1:], os.environ['NAME'], sys.stdin.read(), __name__, os.getcwd())\n\
                print(sorted(n for n in globals() if not n.startswith('__')))\nsys.exit(3)";
    let report = Warm::new().twice(Language::Python, script(code)).await;
    assert_eq!(report.exit, Exit::Code(3), "{}", report.stderr.text());
    assert_eq!(report.stdout.text(), "['first arg', \"it's\"] a 'value'\n typed __main__ /workspace\n['os', 'sys']\n");
}

#[tokio::test]
async fn a_traceback_shows_the_script_and_nothing_else() {
    let warm = Warm::new();
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
    assert_eq!(Warm::new().twice(Language::Python, script(code)).await.stdout.text(), "[2, 3]\n");
}

#[tokio::test]
async fn bash_runs_the_same_warm_and_cold() {
    let code = "echo \"$1|$2|$NAME|$(cat)\"; pwd\nls /proc/self/fd | wc -l\nfalse_command; exit 4";
    let report = Warm::new().twice(Language::Bash, script(code)).await;
    assert_eq!(report.exit, Exit::Code(4));
    assert_eq!(report.stdout.text(), "first arg|it's|a 'value'\n|typed\n/workspace\n4\n");
    assert!(report.stderr.text().contains("line 3: false_command"), "{}", report.stderr.text());
}

#[tokio::test]
async fn bash_shows_the_line_that_is_wrong_and_nothing_else() {
    let warm = Warm::new();
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
async fn bash_starts_with_nothing_of_the_set_up() {
    let code = "echo \"${REPLY-unset} $# $(cat)\"; read -r <<< again; echo $REPLY; exec 3>&1; echo three >&3";
    let report = Warm::new().twice(Language::Bash, script(code)).await;
    assert_eq!(report.stdout.text(), "unset 2 typed\nagain\nthree\n", "{}", report.stderr.text());
    let variables = vec![("REPLY".into(), OsString::from_vec(b"  a\\b \xff\n".to_vec()))];
    let report = Warm::new()
        .twice(Language::Bash, Script { env: variables, ..script("printf %s \"$REPLY\" | od -An -tx1") })
        .await;
    assert_eq!(report.stdout.text(), " 20 20 61 5c 62 20 ff 0a\n", "{}", report.stderr.text());
}

#[tokio::test]
async fn variables_that_count_at_the_start_count() {
    let warm = Warm::new();
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
async fn a_long_script_arrives_whole() {
    let code = format!("x = '{}'\nprint(len(x))", "y".repeat(1 << 20));
    assert_eq!(Warm::new().twice(Language::Python, script(&code)).await.stdout.text(), "1048576\n");
    let code = format!("x='{}'\necho ${{#x}}", "y".repeat(1 << 20));
    assert_eq!(Warm::new().twice(Language::Bash, script(&code)).await.stdout.text(), "1048576\n");
}

#[tokio::test]
async fn nothing_of_one_script_is_left_for_the_next() {
    let warm = Warm::new();
    let code = "import os, builtins; builtins.left = 1; open('/tmp/left', 'w').close(); os.environ['LEFT'] = '1'";
    assert!(warm.run(Language::Python, script(code)).await.success());
    until("another one to wait", || warm.pool.waiting() == 1).await;
    let code = "import os, builtins; print(hasattr(builtins, 'left'), os.listdir('/tmp'), 'LEFT' in os.environ)";
    assert_eq!(warm.run(Language::Python, script(code)).await.stdout.text(), "False [] False\n");
}

#[tokio::test]
async fn time_begins_with_the_script() {
    let warm = Warm::new();
    let interpreter = Interpreter::find(Language::Python).unwrap();
    let place = warm.scene.place().limits(Limits { wall: Duration::from_millis(600), ..limits() });
    warm.pool.warm(&place, &interpreter).await.unwrap();
    tokio::time::sleep(Duration::from_millis(700)).await;
    let run = async |code: &str| warm.pool.run(&place, &interpreter, script(code)).await.unwrap().wait().await.unwrap();
    assert_eq!(run("print('in time')").await.stdout.text(), "in time\n");
    assert_eq!(run("import time; time.sleep(60)").await.limit_hit, Some(Limit::Time));
}

#[tokio::test]
async fn a_folder_that_was_replaced_is_seen_anew() {
    let warm = Warm::new();
    let interpreter = Interpreter::find(Language::Bash).unwrap();
    warm.pool.warm(&warm.scene.place(), &interpreter).await.unwrap();
    fs::rename(warm.scene.folder(), warm.scene.home.path().join("aside")).unwrap();
    fs::create_dir(warm.scene.folder()).unwrap();
    fs::write(warm.scene.folder().join("fresh"), "").unwrap();
    assert_eq!(warm.run(Language::Bash, script("ls")).await.stdout.text(), "fresh\n");
}

#[tokio::test]
async fn what_was_replaced_while_an_interpreter_waited_is_frozen_too() {
    let warm = Warm::new();
    fs::create_dir(warm.scene.folder().join(".git")).unwrap();
    let (source, target) = (source(warm.scene.folder()), "/workspace".into());
    let mount = Mount::Folder { source, target, access: Access::ReadWrite, frozen: vec![".git".into()] };
    let place = Place { mounts: vec![mount], ..warm.scene.place() };
    let interpreter = Interpreter::find(Language::Bash).unwrap();
    warm.pool.warm(&place, &interpreter).await.unwrap();
    fs::rename(warm.scene.folder().join(".git"), warm.scene.folder().join("before")).unwrap();
    fs::create_dir(warm.scene.folder().join(".git")).unwrap();
    let running = warm.pool.run(&place, &interpreter, script("touch .git/config || echo refused")).await.unwrap();
    assert_eq!(running.wait().await.unwrap().stdout.text(), "refused\n");
}

#[tokio::test]
async fn no_more_wait_than_allowed_and_none_for_ever() {
    let scene = Scene::new();
    let options = PoolOptions { waiting: 2, idle: Duration::from_millis(300) };
    let pool = Pool::new(scene.sandbox.clone(), options);
    let interpreter = Interpreter::find(Language::Bash).unwrap();
    for number in 0..4 {
        pool.warm(&scene.place().env("N", number.to_string()), &interpreter).await.unwrap();
    }
    assert_eq!(pool.waiting(), 2);
    until("the waiting to be let go", || pool.waiting() == 0).await;
}

#[tokio::test]
async fn a_waiting_interpreter_is_as_isolated_as_any_job() {
    let code = "import os\nprint([os.path.exists(p) for p in ('/root', '/home', '/sys')], os.getuid())\n\
                print([l.split()[1] for l in open('/proc/self/status') if l.startswith(('CapBnd', 'Seccomp:', 'NoNewPrivs'))])";
    let report = Warm::new().twice(Language::Python, script(code)).await;
    assert_eq!(report.stdout.text(), "[False, False, False] 1000\n['0000000000000000', '1', '2']\n");
}

#[tokio::test]
async fn what_waits_is_held_to_its_limits_too() {
    let warm = Warm::new();
    let mark = format!("toolrest-mark-waiting-{}", std::process::id());
    // Python runs it when it starts, before it asks for its script.
    let greedy = format!(
        "import subprocess\nsubprocess.Popen(['{mark}', '100'], executable='/usr/bin/sleep')\n\
         for i in range(20): open(f'f{{i}}', 'wb').write(bytes(20 << 20))\n"
    );
    let code = format!(
        "import pathlib, site\nfolder = pathlib.Path(site.getusersitepackages()); folder.mkdir(parents=True)\n\
         (folder / 'usercustomize.py').write_text({greedy:?})"
    );
    assert!(warm.run(Language::Python, script(&code)).await.success());
    until("another one to wait", || !processes_with(&mark).is_empty()).await;
    until("its end", || processes_with(&mark).is_empty()).await;
}

#[tokio::test]
async fn what_a_script_makes_at_once_counts_as_its_own() {
    let warm = Warm::new();
    let interpreter = Interpreter::find(Language::Bash).unwrap();
    warm.pool.warm(&warm.scene.place(), &interpreter).await.unwrap();
    // Empty at first, as if they had been there before, then more than all files together may grow.
    let code = "for i in {1..20}; do : > f$i; done; sleep .2; for i in {1..20}; do head -c 60M /dev/zero > f$i; done";
    let report = warm.run(Language::Bash, Script { code: code.into(), ..Script::default() }).await;
    assert_eq!(report.limit_hit, Some(Limit::Disk), "{report:?}");
}
