use super::*;

#[test]
fn the_parameters_about_encryption_are_read_and_removed() {
    for (url, rest, is_on) in [
        ("postgres://h/d", "postgres://h/d", false),
        ("postgres://h/d?sslmode=disable", "postgres://h/d", false),
        ("postgres://h/d?sslmode=prefer&connect_timeout=3", "postgres://h/d?connect_timeout=3", false),
        ("postgres://h/d?a=b&sslmode=require", "postgres://h/d?a=b", true),
    ] {
        let (found, tls) = Tls::of_url(url).unwrap();
        assert_eq!((found.as_str(), tls.is_on()), (rest, is_on), "{url}");
    }
}

#[test]
fn what_cannot_be_verified_as_asked_is_refused() {
    for (url, part) in [
        ("postgres://h/d?sslmode=verify-ca", "use disable, require or verify-full"),
        ("postgres://h/d?sslmode=verify-full&sslrootcert=%2Fno%20where.pem", "from /no where.pem"),
        ("postgres://h/d?sslmode=require&sslrootcert=/a.pem", "is used with `sslmode=verify-full`"),
    ] {
        let error = Tls::of_url(url).err().unwrap();
        assert!(error.message.contains(part), "{url}: {error}");
    }
}
