//! What is asked of addresses and passwords, by whichever way an account is made.

use toolrest_core::{Result, ToolError};

pub(crate) const PASSWORD_CHARS: std::ops::RangeInclusive<usize> = 8..=256;
pub(crate) const EMAIL_BYTES: usize = 254;

/// The form in which addresses are kept and compared.
pub(crate) fn normal_email(email: &str) -> String {
    email.trim().to_lowercase()
}

/// Refuses what cannot be an address.
pub(crate) fn check_email(email: &str) -> Result<String> {
    let email = normal_email(email);
    let (name, host) = email.split_once('@').unwrap_or_default();
    let odd = |c: char| c.is_whitespace() || c.is_control();
    if name.is_empty() || host.is_empty() || host.contains('@') || email.len() > EMAIL_BYTES || email.contains(odd) {
        return Err(ToolError::argument("email", "`email` must be an email address such as ada@example.com"));
    }
    Ok(email)
}

/// Refuses a password that is too short or too long.
pub(crate) fn check_password(password: &str) -> Result<()> {
    let (least, most) = (PASSWORD_CHARS.start(), PASSWORD_CHARS.end());
    if !PASSWORD_CHARS.contains(&password.chars().count()) {
        return Err(ToolError::argument("password", format!("Password must be {least} to {most} characters long")));
    }
    Ok(())
}
