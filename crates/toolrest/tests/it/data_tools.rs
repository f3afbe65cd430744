//! The data tools: Python with pandas and matplotlib, installed by `make python`.

use std::{fmt::Write, fs::File, os::unix::fs::symlink, path::Path};

use serde_json::{Value, json};
use toolrest_testkit::Workspace;

use crate::on::{On, list_at, text_at};
use crate::toolset::{BACKEND, SYSTEM};

on_every_backend![
    a_file_is_analysed_with_pandas,
    a_plot_is_an_image_in_the_workspace,
    a_script_that_fails_is_an_error_with_what_it_printed,
    a_script_that_leaves_no_image_is_an_error,
    missing_input_files_are_refused_before_anything_runs,
];

const CSV: &str = "name,value\na,1\nb,2\na,4\n";

const PLOT: &str = "import sys, pandas, matplotlib.pyplot as plt\n\
                    pandas.read_csv(sys.argv[1]).groupby('name').sum().plot(kind='bar')\n\
                    plt.savefig(sys.argv[2])\n";

async fn with_data(on: On) -> Workspace {
    let workspace = on.workspace().await;
    workspace.write("/data/in.csv", CSV).await;
    workspace
}

fn plot(script: &str, image: &str) -> Value {
    json!({"input_file_path": "data/in.csv", "visualization_script": script, "output_image_path": image})
}

async fn a_file_is_analysed_with_pandas(on: On) {
    let workspace = with_data(on).await;
    let script = "from __future__ import annotations\nimport os, sys, pandas\n\
                  assert sys.argv[1] == os.environ['INPUT_FILE']\n\
                  print(pandas.read_csv(sys.argv[1]).groupby('name')['value'].sum().to_dict())";
    let args = json!({"input_file_path": "./data/in.csv", "analysis_script": script});
    let analysed = BACKEND.ok(&workspace, "data_analyze", args).await;
    assert_eq!(analysed["stdout"], "{'a': 5, 'b': 2}\n", "{analysed}");
    let code = json!({"language": "python", "code": "import pandas; print(len(pandas.read_csv('data/in.csv')))"});
    assert_eq!(SYSTEM.ok(&workspace, "run_code", code).await["stdout"], "3\n", "run_code has it too");
}

async fn a_plot_is_an_image_in_the_workspace(on: On) {
    let workspace = with_data(on).await;
    for _ in 0..2 {
        // The second time it makes the very same image.
        let made = BACKEND.ok(&workspace, "data_visualize", plot(PLOT, "./plots/bars.png")).await;
        assert_eq!(made["message"], "Visualization generated", "{made}");
        assert_eq!(made["output_image_path"], "./plots/bars.png");
    }
    let read = SYSTEM.ok(&workspace, "read_file", json!({"path": "plots/bars.png", "encoding": "base64"})).await;
    assert!(text_at(&read, "/content").starts_with("iVBORw0KGgo"), "a PNG");
    assert!(read["size"].as_u64().is_some_and(|size| size > 2000), "{}", read["size"]);
    let svg = BACKEND.ok(&workspace, "data_visualize", plot(PLOT, "bars.svg")).await;
    assert_eq!(list_at(&svg, "/changes").len(), 1, "{svg}");
}

async fn a_script_that_fails_is_an_error_with_what_it_printed(on: On) {
    let workspace = with_data(on).await;
    let args = json!({"input_file_path": "data/in.csv", "analysis_script": "print('so far')\nraise ValueError('no')"});
    let reply = workspace.call_of("backend", "data_analyze", &args).await;
    let body = reply.json();
    assert_eq!((reply.status, text_at(&body, "/error/code")), (422, "COMMAND_FAILED"), "{reply}");
    assert!(text_at(&body, "/error/message").ends_with("ValueError: no"), "{reply}");
    assert_eq!(body["error"]["details"]["stdout"], "so far\n");
    assert!(text_at(&body, "/error/details/stderr").contains("script.py\", line 2"), "{reply}");
    assert_eq!((&body["error"]["retryable"], body["error"]["remediation"].is_string()), (&json!(false), true));
}

async fn a_script_that_leaves_no_image_is_an_error(on: On) {
    let workspace = with_data(on).await;
    workspace.write("/old.png", "from before").await;
    for (script, image, printed_text) in [
        ("print('nothing')", "new.png", "has written no image"),
        ("import sys; sys.exit()", "old.png", "has written no image"),
        ("import sys; open(sys.argv[2], 'w').write('text')", "text.png", "is not an image"),
    ] {
        let message = BACKEND.refused(&workspace, 422, "COMMAND_FAILED", "data_visualize", plot(script, image)).await;
        assert!(message.contains(printed_text), "{message}");
    }
    workspace.write("/.gitignore", "*.png\n").await;
    let reply = workspace.call_of("backend", "data_visualize", &plot(PLOT, "ignored.png")).await;
    match on {
        On::Sqlite | On::Postgres => assert!(text_at(&reply.json(), "/error/message").contains("not kept"), "{reply}"),
        On::Folder | On::FolderOnPostgres | On::FolderOfUser => assert_eq!(reply.status, 200, "{reply}"),
    }
}

async fn missing_input_files_are_refused_before_anything_runs(on: On) {
    let workspace = with_data(on).await;
    let analyze = |path: &str| json!({"input_file_path": path, "analysis_script": "print('ok')"});
    BACKEND.refused(&workspace, 404, "FILE_NOT_FOUND", "data_analyze", analyze("none.csv")).await;
    BACKEND.refused(&workspace, 400, "INVALID_ARGUMENT", "data_analyze", analyze("data")).await;
    BACKEND.refused(&workspace, 400, "INVALID_ARGUMENT", "data_analyze", analyze("../x")).await;
    BACKEND.refused(&workspace, 400, "INVALID_ARGUMENT", "data_visualize", plot("", "/etc/x.png")).await;
}

#[tokio::test]
async fn a_large_file_is_read_with_pandas() {
    let server = On::Folder.shared();
    let account = On::Folder.account().await;
    let folder = server.new_folder();
    let mut csv = String::with_capacity(101 << 20);
    csv.push_str("number,square,text\n");
    let mut number = 0_u64;
    while csv.len() < 100 << 20 {
        writeln!(csv, "{number},{},some text that makes the line longer", number * number).unwrap();
        number += 1;
    }
    std::fs::write(folder.join("large.csv"), &csv).unwrap();
    let workspace = account.folder_workspace("Large", &folder).await;
    let script = "import sys, pandas\nprint(len(pandas.read_csv(sys.argv[1])))";
    let args = json!({"input_file_path": "large.csv", "analysis_script": script, "timeout": 120});
    let analysed = BACKEND.ok(&workspace, "data_analyze", args).await;
    assert_eq!(analysed["stdout"], format!("{number}\n"), "{analysed}");
}

#[tokio::test]
async fn an_environment_that_is_set_up_later_is_found_without_a_restart() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("python");
    let server = On::Sqlite.options().env("TOOLREST__RUN__PYTHON_DIR", folder.to_str().unwrap()).start();
    let workspace = On::Sqlite.workspace_at(&server).await;
    workspace.write("/in.csv", CSV).await;
    let args = || json!({"input_file_path": "in.csv", "analysis_script": "import pandas; print('ok')"});
    // `toolrest setup python` holds this lock while it works.
    let lock = File::create(home.path().join(".python.lock")).unwrap();
    lock.lock().unwrap();
    let message = BACKEND.refused(&workspace, 503, "INTERNAL", "data_analyze", args()).await;
    assert!(message.contains("still being set up"), "{message}");
    drop(lock);
    BACKEND.refused(&workspace, 501, "NOT_CONFIGURED", "data_analyze", args()).await;
    symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python"), &folder).unwrap();
    assert_eq!(BACKEND.ok(&workspace, "data_analyze", args()).await["stdout"], "ok\n");
}

#[tokio::test]
async fn a_server_without_the_environment_says_how_to_get_it() {
    let server = On::Sqlite.options().env("TOOLREST__RUN__PYTHON_DIR", "/nowhere").start();
    let workspace = On::Sqlite.workspace_at(&server).await;
    workspace.write("/in.csv", CSV).await;
    let args = json!({"input_file_path": "in.csv", "analysis_script": "print('ok')"});
    let message = BACKEND.refused(&workspace, 501, "NOT_CONFIGURED", "data_analyze", args).await;
    assert!(message.contains("toolrest setup python"), "{message}");
    let code = json!({"language": "python", "code": "print('plain')"});
    assert_eq!(SYSTEM.ok(&workspace, "run_code", code).await["stdout"], "plain\n");
}
