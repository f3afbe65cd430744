//! Has a model work in a folder, at an endpoint like OpenAI's over plain HTTP, such as one on this machine:
//! `cargo run --example model_loop -- FOLDER 127.0.0.1:11434 MODEL TASK`.

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::{error::Error, path::Path};
use tokio::net::TcpStream;
use toolrest::{Runtime, settings::Settings};

/// The toolset that the model gets.
const TOOLSET: &str = "coding";
/// Maximum number of answers of the model.
const MAX_TURNS: usize = 20;

/// Gives the model a task, calls the tools that it asks for, and returns its last answer.
pub async fn run(
    folder: &Path,
    data: &Path,
    endpoint: &str,
    model: &str,
    task: &str,
) -> Result<String, Box<dyn Error>> {
    let mut settings = Settings::default();
    settings.server.data_dir = data.to_owned();
    settings.folders.local_dir = Some(folder.to_owned());
    settings.run.enabled = false;

    let runtime = Runtime::open(settings).await?;
    let answer = converse(&runtime, folder, endpoint, model, task).await;
    runtime.close().await;
    answer
}

async fn converse(
    runtime: &Runtime,
    folder: &Path,
    endpoint: &str,
    model: &str,
    task: &str,
) -> Result<String, Box<dyn Error>> {
    let local = runtime.open_local(folder).await?;
    let toolset = runtime.toolsets().find(TOOLSET).ok_or("there is no such toolset")?;
    let functions = toolset.to_openai_functions().into_iter();
    let tools: Vec<Value> = functions.map(|function| json!({ "type": "function", "function": function })).collect();
    let mut messages = vec![json!({ "role": "user", "content": task })];
    for _ in 0..MAX_TURNS {
        let request = json!({ "model": model, "messages": messages, "tools": tools });
        let answer = post(endpoint, "/v1/chat/completions", &request).await?;
        let message = &answer["choices"][0]["message"];
        messages.push(message.clone());
        let calls = message["tool_calls"].as_array().filter(|calls| !calls.is_empty());
        let Some(calls) = calls else {
            return Ok(message["content"].as_str().unwrap_or_default().to_owned());
        };
        for call in calls {
            let tool = call["function"]["name"].as_str().unwrap_or_default();
            let args = call["function"]["arguments"].as_str().unwrap_or_default();
            // What is wrong with a call is an answer too: the model can do better then.
            let content = match serde_json::from_str::<Value>(args) {
                Ok(args) => match runtime.call(local.workspace, local.caller, TOOLSET, tool, &args).await {
                    Ok(outcome) => outcome.text()?,
                    Err(error) => error.message,
                },
                Err(error) => format!("The arguments are not JSON: {error}"),
            };
            messages.push(json!({ "role": "tool", "tool_call_id": call["id"], "content": content }));
        }
    }
    Err(format!("the model did not come to an end within {MAX_TURNS} answers").into())
}

/// Sends JSON to `HOST:PORT` and returns the JSON of the answer.
async fn post(endpoint: &str, path: &str, body: &Value) -> Result<Value, Box<dyn Error>> {
    let stream = TcpStream::connect(endpoint).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let request = hyper::Request::post(path)
        .header("host", endpoint)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body.to_string())))?;
    let answer = sender.send_request(request).await?;
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    if !status.is_success() {
        return Err(format!("the endpoint answered {status}: {}", String::from_utf8_lossy(&body)).into());
    }
    Ok(serde_json::from_slice(&body)?)
}

#[tokio::main(flavor = "multi_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, endpoint, model, task] = &arguments[..] else {
        return Err("give a folder, HOST:PORT of the endpoint, the model and the task".into());
    };
    let data = tempfile::tempdir()?;
    println!("{}", run(Path::new(folder), data.path(), endpoint, model, task).await?);
    Ok(())
}
