//! The GitHub tools, against a host that plays its API.

use serde_json::json;

use crate::github_host::{FILES, TOKEN, github, pull_request, workspace};
use crate::on::{On, list_at, text_at, workspace_at};
use crate::toolset::BACKEND;
use crate::web_host::WebHost;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repository_is_created() {
    let workspace = workspace().await;
    let args = json!({"name": "repo", "description": "demo", "is_private": false});
    let made = BACKEND.ok(&workspace, "github_create_repo", args).await;
    assert_eq!(made["repo_url"], format!("{}/octo/repo", github().url()));
    let sent = github().received("/api/v3/user/repos").pop().unwrap();
    assert_eq!(sent.body, r#"{"name":"repo","description":"demo","private":false}"#);
    assert_eq!(sent.field("x-correlation-id"), Some("test"));
    let made = BACKEND.ok(&workspace, "github_create_repo", json!({"name": "org/hidden"})).await;
    assert_eq!(made["full_name"], "org/hidden");
    let sent = github().received("/api/v3/orgs/org/repos").pop().unwrap();
    assert!(sent.body.contains(r#""private":true"#), "{}", sent.body);
    let taken =
        BACKEND.refused(&workspace, 400, "INVALID_ARGUMENT", "github_create_repo", json!({"name": "taken"})).await;
    assert!(taken.contains("name already exists on this account"), "{taken}");
    for name in ["", "a b", "../x", "org/a/b"] {
        BACKEND.refused(&workspace, 400, "INVALID_ARGUMENT", "github_create_repo", json!({"name": name})).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_files_of_a_pull_request_are_listed() {
    let workspace = workspace().await;
    for repository in ["octo/demo", "octo/moved"] {
        let args = json!({"pr_url": pull_request(repository, 1)});
        let details = BACKEND.ok(&workspace, "github_get_pr_details", args).await;
        assert_eq!((&details["title"], &details["body"]), (&json!("Sharpen the edge"), &json!("It was **dull**.")));
        let files = list_at(&details, "/files");
        assert_eq!((files.len(), &files[0], &files[FILES - 1]), (FILES, &json!("src/0.rs"), &json!("src/249.rs")));
        assert!(details.get("total").is_none(), "{details}");
    }
    let small = BACKEND.ok(&workspace, "github_get_pr_details", json!({"pr_url": pull_request("octo/demo", 2)})).await;
    assert_eq!(
        (&small["body"], &small["state"], &small["files"]),
        (&json!(""), &json!("merged"), &json!(["src/0.rs"]))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pull_request_is_commented_on_and_merged() {
    let workspace = workspace().await;
    let url = pull_request("octo/demo", 1);
    let comment = json!({"pr_url": url, "comment": "Looks good"});
    assert_eq!(BACKEND.ok(&workspace, "github_post_pr_comment", comment).await["message"], "Comment posted");
    let sent = github().received("/api/v3/repos/octo/demo/issues/1/comments").pop().unwrap();
    assert_eq!(sent.body, r#"{"body":"Looks good"}"#);
    let empty = json!({"pr_url": url, "comment": " "});
    BACKEND.refused(&workspace, 400, "INVALID_ARGUMENT", "github_post_pr_comment", empty).await;
    for method in ["merge", "squash", "rebase"] {
        let merged = BACKEND.ok(&workspace, "github_merge_pr", json!({"pr_url": url, "method": method})).await;
        assert_eq!((&merged["message"], &merged["sha"]), (&json!("PR merged"), &json!("abc123")));
        let sent = github().received("/api/v3/repos/octo/demo/pulls/1/merge").pop().unwrap();
        assert_eq!(sent.body, format!(r#"{{"merge_method":"{method}"}}"#));
    }
    let wrong = json!({"pr_url": url, "method": "octopus"});
    BACKEND.refused(&workspace, 400, "INVALID_ARGUMENT", "github_merge_pr", wrong).await;
    let stale = json!({"pr_url": url, "head_sha": "0"});
    let message = BACKEND.refused(&workspace, 409, "CONFLICT", "github_merge_pr", stale).await;
    assert!(message.contains("Head branch was modified"), "{message}");
    let unmergeable = json!({"pr_url": pull_request("octo/demo", 2)});
    let message = BACKEND.refused(&workspace, 409, "CONFLICT", "github_merge_pr", unmergeable).await;
    assert!(message.contains("not mergeable"), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_created_and_replaced() {
    let workspace = workspace().await;
    let args = |path: &str, content: &str| json!({"repo_name": "octo/demo", "path": path, "content": content, "commit_message": "Add readme"});
    let made = BACKEND.ok(&workspace, "github_create_file_in_repo", args("a b/ü#?.md", "# Hello")).await;
    assert_eq!(made["created"], true);
    assert_eq!(text_at(&made, "/commit_sha").len(), 40);
    let again = BACKEND.ok(&workspace, "github_create_file_in_repo", args("a b/ü#?.md", "# Again")).await;
    assert_eq!(again["created"], false);
    let sent = github().received("/api/v3/repos/octo/demo/contents/a%20b/%C3%BC%23%3F.md");
    let sent: serde_json::Value = serde_json::from_str(&sent.last().unwrap().body).unwrap();
    assert_eq!((&sent["content"], &sent["message"]), (&json!("IyBBZ2Fpbg=="), &json!("Add readme")));
    let mut stale = args("a b/ü#?.md", "# Stale");
    stale["expected_sha"] = json!("0");
    let message = BACKEND.refused(&workspace, 409, "CONFLICT", "github_create_file_in_repo", stale).await;
    assert!(message.contains("its hash is now blob-"), "{message}");
    for path in ["", "/a", "a/../b", "a//b", "folder"] {
        BACKEND.refused(&workspace, 400, "INVALID_ARGUMENT", "github_create_file_in_repo", args(path, "x")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_of_github_are_told_apart() {
    let workspace = workspace().await;
    for (repository, status, code, part) in [
        ("octo/missing", 404, "FILE_NOT_FOUND", "GitHub has no pull request octo/missing#1"),
        ("octo/forbidden", 403, "FORBIDDEN", "Resource not accessible"),
        ("octo/failing", 502, "NETWORK_ERROR", "status 503"),
        ("octo/garbled", 502, "NETWORK_ERROR", "cannot be read"),
        ("octo/stolen", 502, "NETWORK_ERROR", "redirects to another host"),
    ] {
        let args = json!({"pr_url": pull_request(repository, 1)});
        let message = BACKEND.refused(&workspace, status, code, "github_get_pr_details", args).await;
        assert!(message.contains(part), "{repository}: {message}");
    }
    assert!(WebHost::web().received("/stolen").is_empty(), "the token was sent to another host");
    let limited = json!({"pr_url": pull_request("octo/limited", 1), "comment": "x"});
    let limited = workspace.call_of("backend", "github_post_pr_comment", &limited).await;
    assert_eq!(limited.status, 429, "{limited}");
    let limited = limited.json();
    assert_eq!(
        (&limited["error"]["details"]["retryAfterSeconds"], &limited["error"]["retryable"]),
        (&json!(30), &json!(true))
    );
    for url in ["https://github.com/octo/demo/pull/1", &pull_request("octo/demo", 0), "octo/demo#1"] {
        BACKEND.refused(&workspace, 400, "INVALID_ARGUMENT", "github_merge_pr", json!({"pr_url": url})).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_local_user_uses_the_token_of_the_settings() {
    let server = On::Sqlite.options().env("TOOLREST__GITHUB__TOKEN", TOKEN).start();
    let workspace = workspace_at(&server).await;
    let args = json!({"pr_url": pull_request("octo/private", 77)});
    let message = BACKEND.refused(&workspace, 501, "NOT_CONFIGURED", "github_get_pr_details", args).await;
    assert!(message.contains("GITHUB_TOKEN"), "{message}");
    assert!(github().received("/api/v3/repos/octo/private/pulls/77").is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_name_repositories_and_the_token_is_in_no_record() {
    let folder = On::Sqlite.shared().new_folder();
    let server = On::Sqlite
        .options()
        .env("TOOLREST__FOLDERS__LOCAL_DIR", folder.to_str().unwrap())
        .env("TOOLREST__GITHUB__TOKEN", "ghp_wrong0000000000000000000000000000000")
        .env("TOOLREST__POLICY__RULES", "deny github(secret/*)")
        .env("TOOLREST__LOG__LEVEL", "debug")
        .start();
    let workspace = crate::local_folder::local_workspace(&server).await;
    for repository in ["secret/demo", "Secret/demo", "SECRET/Demo"] {
        let denied = json!({"pr_url": pull_request(repository, 1)});
        BACKEND.refused(&workspace, 403, "APPROVAL_DENIED", "github_merge_pr", denied).await;
    }
    let wrong = json!({"pr_url": pull_request("octo/demo", 1)});
    let message = BACKEND.refused(&workspace, 501, "NOT_CONFIGURED", "github_get_pr_details", wrong).await;
    assert!(message.contains("does not accept the access token: Bad credentials"), "{message}");
    let calls = workspace.get("/calls").await.success();
    assert!(list_at(&calls, "/calls").len() >= 2, "{calls}");
    for text in [message, calls.to_string(), server.output()] {
        assert!(!text.contains("ghp_wrong"), "{text}");
    }
}
