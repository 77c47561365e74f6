//! Who pushes: as said on the command line, else as the tools of this machine have logged in. Never shown, never logged.

use docker_credential::{
    CredentialRetrievalError, DockerCredential, get_credential, get_podman_credential,
};
use oci_client::secrets::RegistryAuth;

use crate::cluster::image::name::Reference;

/// What credential helpers answer for a registry that they know nothing of.
const UNKNOWN_TO_HELPER: &str = "credentials not found";

/// How a registry is spoken to.
#[derive(Clone, PartialEq, Eq)]
pub enum Login {
    Anonymous,
    Password { user: String, password: String },
}

// By hand, so that no message can hold the password.
impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Login::Anonymous => f.write_str("Anonymous"),
            Login::Password { user, .. } => write!(f, "Password {{ user: {user:?} }}"),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    #[error(
        "the login for {registry} in the settings of docker or podman cannot be used: {reason}"
    )]
    Unusable {
        registry: String,
        reason: &'static str,
    },
}

impl Login {
    /// What `docker login` and `podman login` have left for this registry, or nothing. May start a credential helper.
    ///
    /// # Errors
    /// A login that is there and cannot be read. The helper's own words are left out: they may hold a secret.
    pub fn of_this_machine(reference: &Reference) -> Result<Login, LoginError> {
        let registry = reference.resolve_registry();
        for stored in [get_credential, get_podman_credential] {
            match stored(registry) {
                Ok(DockerCredential::UsernamePassword(user, password)) => {
                    return Ok(Login::Password { user, password });
                }
                Ok(DockerCredential::IdentityToken(_)) => {
                    return Err(unusable(registry, "it is an identity token"));
                }
                Err(error) => {
                    if let Some(reason) = reason(&error) {
                        return Err(unusable(registry, reason));
                    }
                }
            }
        }
        Ok(Login::Anonymous)
    }

    pub(super) fn for_client(&self) -> RegistryAuth {
        match self {
            Login::Anonymous => RegistryAuth::Anonymous,
            Login::Password { user, password } => {
                RegistryAuth::Basic(user.clone(), password.clone())
            }
        }
    }
}

fn unusable(registry: &str, reason: &'static str) -> LoginError {
    LoginError::Unusable {
        registry: registry.to_owned(),
        reason,
    }
}

/// Why a stored login cannot be used; nothing where there is none.
fn reason(error: &CredentialRetrievalError) -> Option<&'static str> {
    match error {
        // The library says the same of a file that is not there and of one that is broken. The registry decides then
        // whether it wants a login.
        CredentialRetrievalError::NoCredentialConfigured
        | CredentialRetrievalError::ConfigNotFound
        | CredentialRetrievalError::ConfigReadError => None,
        CredentialRetrievalError::HelperFailure { stdout, stderr, .. }
            if stdout.contains(UNKNOWN_TO_HELPER) || stderr.contains(UNKNOWN_TO_HELPER) =>
        {
            None
        }
        CredentialRetrievalError::HelperFailure { .. } => Some("its credential helper failed"),
        CredentialRetrievalError::HelperCommunicationError => {
            Some("its credential helper cannot be started")
        }
        CredentialRetrievalError::MalformedHelperResponse => {
            Some("its credential helper answered something else")
        }
        CredentialRetrievalError::CredentialDecodingError => {
            Some("it is not base64 of user:password")
        }
        CredentialRetrievalError::CredentialMismatchError => {
            Some("its auth differs from its username and password")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_helper_that_knows_nothing_means_no_login_and_its_words_are_never_repeated() {
        let failure = |stdout: &str| CredentialRetrievalError::HelperFailure {
            helper: "docker-credential-x".to_owned(),
            stdout: stdout.to_owned(),
            stderr: String::new(),
        };
        assert_eq!(
            reason(&failure("credentials not found in native keychain\n")),
            None
        );
        let said = unusable("a.example", reason(&failure("hunter2")).unwrap()).to_string();
        assert!(!said.contains("hunter2"), "{said}");
    }

    #[test]
    fn a_password_is_not_in_what_is_printed_for_debugging() {
        let login = Login::Password {
            user: "ci".to_owned(),
            password: "hunter2".to_owned(),
        };
        assert_eq!(format!("{login:?}"), "Password { user: \"ci\" }");
    }
}
