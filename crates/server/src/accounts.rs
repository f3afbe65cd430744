//! Rules for email addresses and passwords, for registration and for the operator's commands.

use toolrest_core::{Result, ToolError};

pub(crate) const PASSWORD_CHARS: std::ops::RangeInclusive<usize> = 8..=256;
pub(crate) const EMAIL_BYTES: usize = 254;

/// Returns an address in the form in which it is stored and compared.
pub(crate) fn normal_email(email: &str) -> String {
    email.trim().to_lowercase()
}

/// Refuses a text that is not an email address; returns its normal form.
pub(crate) fn check_email(email: &str) -> Result<String> {
    let email = normal_email(email);
    let (name, host) = email.split_once('@').unwrap_or_default();
    let is_invalid = |c: char| c.is_whitespace() || c.is_control();
    if name.is_empty()
        || host.is_empty()
        || host.contains('@')
        || email.len() > EMAIL_BYTES
        || email.contains(is_invalid)
    {
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
