//! Embeds the web console that `make console` builds. Without it the server compiles too, and says how to build it.

use std::{
    env,
    error::Error,
    fmt::Write,
    fs, io,
    path::{Path, PathBuf},
};

/// Where `make console` leaves the files of the console. The folder above it always exists, so that cargo can watch it.
const DIST: &str = "../../web/dist";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={DIST}");
    println!("cargo:rerun-if-changed=build.rs");
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join(DIST).join("site");
    let index = root.join("index.html");
    let (mut page, mut assets) = ("None".to_owned(), String::new());
    if index.is_file() {
        page = format!("Some(include_str!({}))", literal(index)?);
        let folder = root.join("assets");
        let mut files = fs::read_dir(&folder)?.collect::<io::Result<Vec<_>>>()?;
        files.sort_by_key(fs::DirEntry::file_name);
        for file in files {
            let name = literal(file.file_name().into())?;
            if [".br\"", ".gz\""].iter().any(|ending| name.ends_with(ending)) {
                continue;
            }
            let plain = literal(file.path())?;
            let (brotli, gzip) = (compressed(&file.path(), "br")?, compressed(&file.path(), "gz")?);
            writeln!(
                assets,
                "Asset {{ name: {name}, plain: include_bytes!({plain}), brotli: {brotli}, gzip: {gzip} }},"
            )?;
        }
    }
    let code = format!("static PAGE: Option<&str> = {page};\nstatic ASSETS: &[Asset] = &[\n{assets}];\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("console.rs"), code)?;
    Ok(())
}

/// Returns the expression for the compressed form of a file, which very small files do not have.
fn compressed(file: &Path, ending: &str) -> Result<String, Box<dyn Error>> {
    let mut name = file.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    let path = PathBuf::from(name);
    Ok(if path.is_file() { format!("Some(include_bytes!({}))", literal(path)?) } else { "None".to_owned() })
}

/// Returns a path as the literal of a string.
fn literal(path: PathBuf) -> Result<String, Box<dyn Error>> {
    let text = path.into_os_string().into_string().map_err(|path| format!("{} is not UTF-8", path.display()))?;
    Ok(format!("{text:?}"))
}
