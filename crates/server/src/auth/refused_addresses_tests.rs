use super::*;

#[test]
fn only_the_address_over_its_limit_is_refused_until_its_time_is_over() {
    let limited = RefusedAddresses::default();
    limited.check("192.0.2.1").unwrap();
    assert_eq!(limited.refuse("192.0.2.1", Duration::from_secs(60)).kind, ErrorKind::RateLimited);
    assert_eq!(limited.check("192.0.2.1").unwrap_err().kind, ErrorKind::RateLimited);
    limited.check("192.0.2.2").unwrap();
    limited.refuse("192.0.2.3", Duration::ZERO);
    limited.check("192.0.2.3").unwrap();
}

#[test]
fn the_number_of_remembered_addresses_is_limited() {
    let limited = RefusedAddresses::default();
    for n in 0..ADDRESSES_LIMIT + 5 {
        limited.refuse(&n.to_string(), Duration::from_secs(60));
    }
    assert!(limited.0.lock().unwrap().len() <= ADDRESSES_LIMIT);
}
