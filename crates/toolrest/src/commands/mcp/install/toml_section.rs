//! One section of a TOML file, changed as text so that comments and order stay.

/// Returns a TOML text with a section that starts a program, in place of one of the same name.
pub(super) fn with(text: &str, name: &str, program: &str, arguments: &[String]) -> Result<String, String> {
    let parsed: toml::Table = text.parse().map_err(|error| format!("it is not TOML: {error}"))?;
    let arguments: Vec<String> = arguments.iter().map(|argument| quoted(argument)).collect();
    let section = format!("[{name}]\ncommand = {}\nargs = [{}]\n", quoted(program), arguments.join(", "));
    let header = format!("[{name}]");
    let is_header = |line: &&str| line.trim_start().starts_with('[');
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut after = String::new();
    if let Some(start) = lines.iter().position(|line| line.trim() == header) {
        let end = lines[start + 1..].iter().position(is_header).map_or(lines.len(), |at| start + 1 + at);
        after.push_str(&lines[..start].concat());
        after.push_str(&section);
        let rest = lines[end..].concat();
        if !rest.is_empty() {
            after.push('\n');
            after.push_str(&rest);
        }
    } else {
        after.push_str(text);
        if !text.is_empty() {
            after.push_str(if text.ends_with('\n') { "\n" } else { "\n\n" });
        }
        after.push_str(&section);
    }
    // A section that is written in another way, such as an inline table, would be there twice.
    let changed: toml::Table =
        after.parse().map_err(|error| format!("the entry `{name}` has a form that cannot be replaced: {error}"))?;
    let others = |table: &toml::Table| {
        let mut table = table.clone();
        remove(&mut table, name);
        table
    };
    if others(&parsed) != others(&changed) {
        return Err(format!("the entry `{name}` has a form that cannot be replaced; remove it first"));
    }
    let known = name.split('.').try_fold(&toml::Value::Table(parsed.clone()), |value, key| value.get(key)).cloned();
    let new = name.split('.').try_fold(&toml::Value::Table(changed), |value, key| value.get(key)).cloned();
    Ok(if known == new { text.to_owned() } else { after })
}

/// Removes an entry, and tables that are empty without it.
fn remove(table: &mut toml::Table, name: &str) {
    let Some((first, rest)) = name.split_once('.') else {
        table.remove(name);
        return;
    };
    if let Some(toml::Value::Table(inner)) = table.get_mut(first) {
        remove(inner, rest);
        if inner.is_empty() {
            table.remove(first);
        }
    }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
