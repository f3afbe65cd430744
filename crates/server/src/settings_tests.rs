use super::*;

const LONG_SECRET: &str = "0123456789abcdef0123456789abcdef";

fn file(text: &str) -> Sources {
    Sources { file: Some((PathBuf::from("toolrest.toml"), text.to_owned())), ..Sources::default() }
}

fn environment(variables: &[(&str, &str)]) -> Sources {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Sources { environment: variables.iter().map(own).collect(), ..Sources::default() }
}

fn flag(key: &'static str, name: &str, value: &str) -> Sources {
    Sources { flags: vec![(key, name.to_owned(), value.to_owned())], ..Sources::default() }
}

fn loaded(sources: Sources) -> LoadedSettings {
    load(sources).unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(sources: Sources) -> String {
    match load(sources) {
        Ok(loaded) => panic!("loaded without an error:\n{loaded}"),
        Err(error) => error.to_string(),
    }
}

fn effective(loaded: &LoadedSettings, key: &str) -> (String, String) {
    let all = loaded.report();
    let found = all.into_iter().find(|effective| effective.key == key);
    let found = found.unwrap_or_else(|| panic!("{key} is not in the report"));
    (found.value, found.origin)
}

#[test]
fn loading_nothing_gives_the_defaults() {
    let loaded = loaded(Sources::default());
    assert_eq!(loaded.settings, Settings::default());
    assert_eq!(loaded.settings.server.listen.to_string(), "127.0.0.1:3000");
    assert_eq!(loaded.settings.limits.body_bytes, 33_554_432);
    assert_eq!(loaded.settings.database.url, None);
    assert!(loaded.report().iter().all(|e| e.origin == "default"));
}

#[test]
fn every_default_would_be_accepted_from_a_file() {
    let settings = Settings::default();
    for setting in TABLE {
        if let Some(value) = (setting.get)(&settings) {
            let sources = file(&format!("{} = {value}", setting.key));
            assert_eq!(Settings { file: None, ..loaded(sources).settings }, settings, "{}", setting.key);
        }
    }
}

#[test]
fn the_settings_know_the_file_that_they_were_read_from() {
    let path = std::env::current_dir().unwrap().join("toolrest.toml");
    assert_eq!(loaded(file("")).settings.file, Some(path));
    assert_eq!(loaded(Sources::default()).settings.file, None);
}

#[test]
fn values_in_a_file_take_the_types_of_their_settings() {
    let settings = loaded(file(
        r#"
        [server]
        listen = "[::1]:8080"
        data_dir = "/var/lib/toolrest"
        trusted_proxies = ["127.0.0.1", "10.1.0.0/16"]
        [database]
        url = "postgres://localhost/toolrest"
        pool_size = 64
        [log]
        level = "debug"
        format = "json"
        "#,
    ))
    .settings;
    assert_eq!(settings.server.listen.port(), 8080);
    assert_eq!(settings.server.data_dir, PathBuf::from("/var/lib/toolrest"));
    assert_eq!(settings.server.trusted_proxies, ["127.0.0.1", "10.1.0.0/16"]);
    let url = settings.database.url.as_deref();
    assert_eq!(url, Some("postgres://localhost/toolrest"));
    assert_eq!(settings.database.pool_size, 64);
    assert_eq!(settings.log.level, LogLevel::Debug);
    assert_eq!(settings.log.format, LogFormat::Json);
}

#[test]
fn each_layer_wins_over_the_one_before_it_and_is_named_as_origin() {
    let mut sources = file("[server]\nlisten = '127.0.0.1:1'");
    let origin = |sources: &Sources| effective(&loaded(sources.clone()), "server.listen");
    let shown = |port: u16, origin: &str| (format!("\"127.0.0.1:{port}\""), origin.to_owned());
    assert_eq!(origin(&sources), shown(1, "file toolrest.toml"));

    let variable = "TOOLREST__SERVER__LISTEN";
    sources.environment = environment(&[(variable, "127.0.0.1:2")]).environment;
    let expected = shown(2, "environment TOOLREST__SERVER__LISTEN");
    assert_eq!(origin(&sources), expected);

    sources.flags = flag("server.listen", "--listen", "127.0.0.1:3").flags;
    assert_eq!(origin(&sources), shown(3, "flag --listen"));
}

#[test]
fn a_fault_in_a_file_is_reported_even_where_a_flag_overrides_the_value() {
    let mut sources = flag("server.listen", "--listen", "127.0.0.1:3");
    sources.file = file("[server]\nlisten = 3000").file;
    assert!(refusal(sources).starts_with("file toolrest.toml, line 2: "));
}

#[test]
fn the_environment_is_read_in_either_case_behind_its_prefix() {
    let settings = loaded(environment(&[
        ("TOOLREST__auth__Registration_Open", "false"),
        ("TOOLREST__DATABASE__POOL_SIZE", "5"),
        ("PATH", "/usr/bin"),
        ("TOOLREST_HOME", "not a setting: one underscore"),
        ("BUILDSCALE__DATABASE__USER", "not one of the two aliases"),
    ]))
    .settings;
    assert!(!settings.auth.registration_open);
    assert_eq!(settings.database.pool_size, 5);
}

#[test]
fn the_names_of_specification_000_set_the_token_settings() {
    let minutes = "BUILDSCALE__JWT__ACCESS_TOKEN_EXPIRATION_MINUTES";
    let loaded = loaded(environment(&[("BUILDSCALE__JWT__SECRET", LONG_SECRET), (minutes, "60")]));
    assert_eq!(loaded.settings.jwt.secret.as_deref(), Some(LONG_SECRET));
    assert_eq!(loaded.settings.jwt.access_token_expiration_minutes, 60);
    let (_, origin) = effective(&loaded, "jwt.access_token_expiration_minutes");
    assert_eq!(origin, format!("environment {minutes}"));
}

#[test]
fn our_own_name_wins_over_an_alias_in_whichever_order_they_stand() {
    let own = ("TOOLREST__JWT__ACCESS_TOKEN_EXPIRATION_MINUTES", "5");
    let alias = ("BUILDSCALE__JWT__ACCESS_TOKEN_EXPIRATION_MINUTES", "60");
    for variables in [[own, alias], [alias, own]] {
        let settings = loaded(environment(&variables)).settings;
        assert_eq!(settings.jwt.access_token_expiration_minutes, 5);
    }
}

#[test]
fn an_unknown_key_in_a_file_is_named_with_its_line_and_the_nearest_key() {
    assert_eq!(
        refusal(file("[server]\n\nlisten_on = \"127.0.0.1:1\"")),
        "file toolrest.toml, line 3: `server.listen_on` is not known; did you mean `server.listen`?"
    );
}

#[test]
fn an_unknown_section_is_named_with_its_line_and_the_nearest_section_even_when_empty() {
    for text in ["# ours\n[databse]", "# ours\n[databse]\npool_size = 3"] {
        assert_eq!(
            refusal(file(text)),
            "file toolrest.toml, line 2: `[databse]` is not known; did you mean `[database]`?"
        );
    }
}

#[test]
fn a_key_without_or_in_the_wrong_section_is_led_to_the_right_one() {
    let cases = [
        ("listen = '127.0.0.1:1'", "`listen`", "`server.listen`"),
        ("[server]\npool_size = 3", "`server.pool_size`", "`database.pool_size`"),
        ("[jwt]\nexpiration_minutes = 3", "`jwt.expiration_minutes`", "`jwt.access_token_expiration_minutes`"),
    ];
    for (text, key, nearest) in cases {
        let expected = format!("{key} is not known; did you mean {nearest}?");
        assert!(refusal(file(text)).ends_with(&expected), "{text}");
    }
}

#[test]
fn an_unknown_key_in_the_environment_is_named_with_its_variable_and_the_nearest_key() {
    let cases = [
        ("TOOLREST__SERVER__LISTN", "server.listn"),
        ("TOOLREST__SEVER__LISTEN", "sever.listen"),
        ("TOOLREST__LISTEN", "listen"),
        ("TOOLREST__SERVER__LISTEN__PORT", "server.listen__port"),
    ];
    for (variable, key) in cases {
        assert_eq!(
            refusal(environment(&[(variable, "127.0.0.1:1")])),
            format!("environment {variable}: `{key}` is not known; did you mean `server.listen`?")
        );
    }
}

#[test]
fn a_value_of_the_wrong_type_is_shown_with_its_line_and_what_is_expected() {
    let cases = [
        (
            "[database]\npool_size = \"10\"",
            "`database.pool_size = \"10\"` is refused; expected a whole number from 1 to 1000",
        ),
        ("[auth]\nsecure_cookies = 1", "`auth.secure_cookies = 1` is refused; expected true or false"),
        (
            "[server]\nlisten = \"localhost\"",
            "`server.listen = \"localhost\"` is refused; \
             expected an IP address with a port, such as \"127.0.0.1:3000\"",
        ),
        (
            "[log]\nlevel = \"loud\"",
            "`log.level = \"loud\"` is refused; expected one of error, warn, info, debug, trace",
        ),
        (
            "[server]\nlisten.port = 3000",
            "`server.listen = { port = 3000 }` is refused; \
             expected an IP address with a port, such as \"127.0.0.1:3000\"",
        ),
        ("[server]\ndata_dir = \"\"", "`server.data_dir = \"\"` is refused; expected the path of a folder"),
    ];
    for (text, expected) in cases {
        let expected = format!("file toolrest.toml, line 2: {expected}");
        assert_eq!(refusal(file(text)), expected);
    }
}

#[test]
fn text_that_does_not_fit_is_shown_with_its_variable_or_flag() {
    assert_eq!(
        refusal(environment(&[("TOOLREST__AUTH__SECURE_COOKIES", "yes")])),
        "environment TOOLREST__AUTH__SECURE_COOKIES: \
         `auth.secure_cookies = \"yes\"` is refused; expected true or false"
    );
    assert_eq!(
        refusal(flag("log.format", "--log-format", "xml")),
        "flag --log-format: `log.format = \"xml\"` is refused; expected one of text, json"
    );
}

#[test]
fn numbers_outside_their_range_are_refused_and_its_ends_are_not() {
    for setting in TABLE {
        if let Accepts::Whole(min, max) = setting.accepts {
            for number in [min, max] {
                loaded(flag(setting.key, "--x", &number.to_string()));
            }
            for number in [min - 1, max + 1] {
                let expected = format!("expected a whole number from {min} to {max}");
                let refusal = refusal(flag(setting.key, "--x", &number.to_string()));
                assert!(refusal.ends_with(&expected), "{refusal}");
            }
        }
    }
}

#[test]
fn every_name_in_a_list_of_choices_is_accepted() {
    for setting in TABLE {
        if let Accepts::OneOf(names) = setting.accepts {
            for name in names.split(", ") {
                let (value, _) = effective(&loaded(flag(setting.key, "--x", name)), setting.key);
                assert_eq!(value, format!("{name:?}"));
            }
        }
    }
}

#[test]
fn a_section_given_as_a_value_is_refused_without_showing_the_value() {
    let expected = "file toolrest.toml, line 1: \
                    `jwt` is a section, not a setting; write its settings below `[jwt]`";
    assert_eq!(refusal(file("jwt = 'hunter2'")), expected);
    assert_eq!(refusal(file("[[jwt]]\nsecret = 'hunter2'")), expected);
}

#[test]
fn a_secret_under_32_characters_is_refused_and_one_of_32_is_not() {
    assert_eq!(
        refusal(environment(&[("BUILDSCALE__JWT__SECRET", &LONG_SECRET[1..])])),
        "environment BUILDSCALE__JWT__SECRET: \
         `jwt.secret = (hidden)` is refused; expected a text of at least 32 characters"
    );
    // 31 characters of two bytes each.
    let short = "é".repeat(31);
    assert!(refusal(flag("jwt.secret", "--secret", &short)).contains("at least 32 characters"));
    loaded(flag("jwt.secret", "--secret", LONG_SECRET));
}

#[test]
fn a_secret_made_of_digits_stays_text() {
    let digits = "12345678901234567890123456789012";
    let settings = loaded(environment(&[("TOOLREST__JWT__SECRET", digits)])).settings;
    assert_eq!(settings.jwt.secret.as_deref(), Some(digits));
}

#[test]
fn no_message_about_a_file_shows_a_secret() {
    let faulty = [
        "[jwt]\nsecret = hunter2",
        "[jwt]\nsecret = \"hunter2",
        "[jwt]\nsecret = \"hunter2\"",
        "[jwt]\nsecret = [\"hunter2\"]",
        "[jwt]\nsecrets = \"hunter2\"",
        "[jwt]\nsecret = \"hunter2\" x",
        "[jwt]\nsecret = 'x'\nsecret = 'hunter2'",
        "[database]\nurl = \"mysql://ada:hunter2@host/db\"",
        "[database]\nurl = \"host=db password=hunter2\"",
    ];
    for text in faulty {
        let Err(error) = load(file(text)) else {
            panic!("loaded without an error: {text}");
        };
        assert!(!error.to_string().contains("hunter2"), "{error}");
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    }
}

#[test]
fn a_number_past_64_bits_is_refused_where_it_stands() {
    assert_eq!(
        refusal(file("[database]\npool_size = 99999999999999999999")),
        "file toolrest.toml, line 2: \
         `database.pool_size = inf` is refused; expected a whole number from 1 to 1000"
    );
}

#[test]
fn a_secret_of_digits_without_quotes_is_refused_and_hidden() {
    assert_eq!(
        refusal(file("[jwt]\nsecret = 12345678901234567890123456789012")),
        "file toolrest.toml, line 2: \
         `jwt.secret = (hidden)` is refused; expected a text of at least 32 characters"
    );
}

#[test]
fn a_file_that_is_not_toml_is_refused_with_the_line() {
    let refusal = refusal(file("[server]\nshutdown_grace_ms = 0\nlisten"));
    let expected = "file toolrest.toml, line 3: not valid TOML: ";
    assert!(refusal.starts_with(expected), "{refusal}");
}

#[test]
fn neither_the_report_nor_debug_shows_a_secret() {
    let loaded = loaded(environment(&[
        ("TOOLREST__JWT__SECRET", LONG_SECRET),
        ("TOOLREST__DATABASE__URL", "postgres://ada:hunter2@db/toolrest"),
    ]));
    let (secret, _) = effective(&loaded, "jwt.secret");
    assert_eq!(secret, "\"********\"");
    let (url, _) = effective(&loaded, "database.url");
    assert_eq!(url, "\"postgres://ada:********@db/toolrest\"");
    let settings = &loaded.settings;
    for text in [
        loaded.to_string(),
        format!("{loaded:?}"),
        format!("{settings:#?}"),
        format!("{:?} {:?}", settings.jwt, settings.database),
    ] {
        assert!(!text.contains(LONG_SECRET), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
        assert!(text.contains("postgres://ada:********@db/toolrest"), "{text}");
    }
}

#[test]
fn the_password_of_a_url_is_hidden_wherever_it_stands() {
    let cases = [
        ("postgres://db/toolrest", "postgres://db/toolrest"),
        ("postgres://ada@db:5432/x", "postgres://ada@db:5432/x"),
        ("postgres://ada:pw@db:5432/x", "postgres://ada:********@db:5432/x"),
        ("postgres://:pw@db/x", "postgres://:********@db/x"),
        ("postgres://ada:p@w:d/?&@db/x", "postgres://ada:********@db/x"),
        (
            "postgres://db/x?user=ada&password=p@w&sslmode=require",
            "postgres://db/x?user=ada&password=********&sslmode=require",
        ),
        ("postgres://db:5432/x?password=p@w", "postgres://db:5432/x?password=********"),
        ("postgres://ada:pw@db/x?password=pw", "postgres://ada:********@db/x?password=********"),
    ];
    for (url, shown) in cases {
        assert_eq!(without_password(url), shown);
    }
}

#[test]
fn the_report_prints_one_line_per_setting_with_the_origins_aligned() {
    let text = loaded(environment(&[("TOOLREST__LOG__LEVEL", "warn")])).to_string();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), TABLE.len());
    let column = lines[0].find("   # ");
    for line in &lines {
        assert_eq!(line.find(" # "), column.map(|column| column + 2), "{line}");
    }
    let starts = |start: &str| lines.iter().any(|line| line.starts_with(start));
    assert!(starts("server.listen = \"127.0.0.1:3000\" "), "{text}");
    assert!(starts("database.url = (none) "), "{text}");
    assert!(text.contains("   # environment TOOLREST__LOG__LEVEL\n"), "{text}");
}

#[test]
fn the_reference_has_a_row_for_every_setting() {
    let reference = reference();
    assert_eq!(reference.lines().count(), TABLE.len() + 2);
    for row in reference.lines() {
        assert_eq!(row.matches('|').count(), 5, "{row}");
    }
    let pool_size = "| `database.pool_size` | `TOOLREST__DATABASE__POOL_SIZE` | `10` | \
                     Maximum number of open connections. Takes a whole number from 1 to 1000. |";
    assert!(reference.contains(pool_size), "{reference}");
    assert!(reference.contains("`TOOLREST__JWT__SECRET`, `BUILDSCALE__JWT__SECRET` | `(none)`"));
}

#[test]
fn every_name_in_the_reference_is_understood() {
    for name in reference().split('`').filter(|word| word.contains("__")) {
        let known = match load(environment(&[(name, "")])) {
            Ok(_) => false,
            Err(error) => matches!(error.problem, Problem::Refused { .. }),
        };
        assert!(known, "{name}");
    }
}

#[test]
fn a_server_for_one_folder_keeps_its_data_with_the_user_and_registration_closed() {
    let load = |environment: &[(&str, &str)], flags: &[(&'static str, &str)]| {
        let environment = environment.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let flags = flags.iter().map(|(key, value)| (*key, "--flag".to_owned(), value.to_string())).collect();
        load(Sources { file: None, environment, flags }).unwrap()
    };
    let home = ("HOME", "/home/ada");
    let dir = ("folders.local_dir", "/srv/project");
    let loaded = load(&[home], &[dir]);
    assert_eq!(loaded.settings.server.data_dir, PathBuf::from("/home/ada/.local/share/toolrest"));
    assert!(!loaded.settings.auth.registration_open);
    assert!(loaded.to_string().contains("default with folders.local_dir"), "{loaded}");
    let loaded = load(&[home, ("XDG_DATA_HOME", "/data/ada")], &[dir]);
    assert_eq!(loaded.settings.server.data_dir, PathBuf::from("/data/ada/toolrest"));
    // A relative one is to be ignored, says the specification of these variables.
    let loaded = load(&[home, ("XDG_DATA_HOME", "data")], &[dir]);
    assert_eq!(loaded.settings.server.data_dir, PathBuf::from("/home/ada/.local/share/toolrest"));
    let asked = [dir, ("server.data_dir", "/var/lib/toolrest"), ("auth.registration_open", "true")];
    let loaded = load(&[home], &asked);
    assert_eq!(loaded.settings.server.data_dir, PathBuf::from("/var/lib/toolrest"));
    assert!(loaded.settings.auth.registration_open);
    let plain = load(&[home], &[]).settings;
    assert!(plain.auth.registration_open && plain.server.data_dir.to_str() == Some("./data"));
}

#[test]
fn lists_of_hosts_origins_and_roots_are_checked() {
    for (key, good, bad) in [
        ("server.allowed_hosts", "tools.example.com,*.example.org", "https://tools.example.com"),
        ("server.allowed_origins", "https://example.com,http://localhost:5173", "example.com"),
        ("server.trusted_proxies", "127.0.0.1,10.0.0.0/8", "10.0.0.1/8"),
        ("folders.account_roots", "Ada@example.com=/srv/ada,bob@example.com=/srv/bob", "/srv/ada"),
    ] {
        let given =
            |text: &str| load(Sources { flags: vec![(key, "--flag".into(), text.into())], ..Sources::default() });
        assert!(given(good).is_ok(), "{key} = {good}");
        assert!(given(bad).is_err(), "{key} = {bad}");
    }
    assert_eq!(account_root("Ada@example.com=/srv/a=b"), Some(("ada@example.com".into(), PathBuf::from("/srv/a=b"))));
}
