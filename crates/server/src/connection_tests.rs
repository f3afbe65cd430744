use super::*;

#[test]
fn one_address_gets_half_of_the_connections_and_a_proxy_all_of_them() {
    let connections = Connections::new(4);
    let address = |last: u8| IpAddr::from([192, 0, 2, last]);
    let first: Vec<_> = (0..2).map(|_| connections.enter(address(1), false).unwrap()).collect();
    assert!(connections.enter(address(1), false).is_none());
    let second = connections.enter(address(2), false).unwrap();
    drop(first);
    drop(second);
    assert!(connections.open.lock().unwrap().by_address.is_empty());
    let proxied: Vec<_> = (0..4).map(|_| connections.enter(address(3), true).unwrap()).collect();
    assert!(connections.enter(address(3), true).is_none() && connections.enter(address(4), false).is_none());
    drop(proxied);
    assert_eq!(connections.open.lock().unwrap().all, 0);
}
