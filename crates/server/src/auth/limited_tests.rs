use super::*;

#[test]
fn an_address_is_refused_until_its_time_is_over_and_no_other() {
    let limited = Limited::default();
    limited.check("192.0.2.1").unwrap();
    assert_eq!(limited.refuse("192.0.2.1", Duration::from_secs(60)).kind, ErrorKind::RateLimited);
    assert_eq!(limited.check("192.0.2.1").unwrap_err().kind, ErrorKind::RateLimited);
    limited.check("192.0.2.2").unwrap();
    limited.refuse("192.0.2.3", Duration::ZERO);
    limited.check("192.0.2.3").unwrap();
}

#[test]
fn no_more_addresses_are_remembered_than_fit() {
    let limited = Limited::default();
    for n in 0..REMEMBERED + 5 {
        limited.refuse(&n.to_string(), Duration::from_secs(60));
    }
    assert!(limited.0.lock().unwrap().len() <= REMEMBERED);
}
