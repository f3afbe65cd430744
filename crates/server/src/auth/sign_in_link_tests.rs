use super::*;

#[test]
fn a_link_works_once_within_its_lifetime() {
    let (link, target) = (SignInLink::default(), LinkTarget { user: UserId::new(), workspace: WorkspaceId::new() });
    let token = link.create(target, LINK_LIFETIME).unwrap();
    assert_eq!(link.spend("another"), None);
    assert_eq!(link.spend(&token), Some(target), "a wrong token does not use it up");
    assert_eq!(link.spend(&token), None);
    let expired = link.create(target, Duration::ZERO).unwrap();
    assert_eq!(link.spend(&expired), None);
}
