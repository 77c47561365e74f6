//! The server's side of SCRAM-SHA-256 (RFC 5802 and 7677), without channel binding.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// The mechanism as it is offered.
pub const MECHANISM: &str = "SCRAM-SHA-256";
/// Random bytes in the server's part of the nonce, as many as Postgres takes.
const NONCE_BYTES: usize = 18;

/// A password as a server keeps it: enough to check a proof, not enough to log in.
#[derive(Clone, Debug)]
pub struct Verifier {
    iterations: String,
    salt: String,
    stored_key: Vec<u8>,
    server_key: Vec<u8>,
}

/// Why an exchange failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The messages are not those of this exchange.
    Malformed(&'static str),
    /// They are, but the password was another one.
    WrongPassword,
}

impl Verifier {
    /// The verifier of a password, with a salt of its own.
    pub fn of(password: &str) -> Verifier {
        let text = postgres_protocol::password::scram_sha_256(password.as_bytes());
        Verifier::parse(&text)
            .expect("the library writes SCRAM-SHA-256$iterations:salt$stored:server")
    }

    fn parse(text: &str) -> Option<Verifier> {
        let (iterations, rest) = text.strip_prefix("SCRAM-SHA-256$")?.split_once(':')?;
        let (salt, keys) = rest.split_once('$')?;
        let (stored, server) = keys.split_once(':')?;
        Some(Verifier {
            iterations: iterations.to_owned(),
            salt: salt.to_owned(),
            stored_key: STANDARD.decode(stored).ok()?,
            server_key: STANDARD.decode(server).ok()?,
        })
    }
}

/// An exchange after the client's first message.
#[derive(Debug)]
pub struct Exchange {
    verifier: Verifier,
    /// The client's header on channel binding, encoded as its last message must repeat it.
    binding: String,
    nonce: String,
    client_first: String,
    server_first: String,
}

impl Exchange {
    /// Begins with the client's first message. The server's answer is [`Exchange::challenge`].
    pub fn begin(verifier: Verifier, message: &[u8]) -> Result<Exchange, Refusal> {
        let random: [u8; NONCE_BYTES] = rand::random();
        Exchange::with_nonce(verifier, message, &STANDARD.encode(random))
    }

    fn with_nonce(verifier: Verifier, message: &[u8], own: &str) -> Result<Exchange, Refusal> {
        let message = text(message)?;
        let mut parts = message.splitn(3, ',');
        let (flag, authzid) = (parts.next(), parts.next());
        let (Some(flag @ ("n" | "y")), Some(authzid), Some(bare)) = (flag, authzid, parts.next())
        else {
            return Err(Refusal::Malformed("channel binding was not offered"));
        };
        let theirs = attribute(bare, "r=").ok_or(Refusal::Malformed("no nonce"))?;
        let nonce = format!("{theirs}{own}");
        Ok(Exchange {
            server_first: format!("r={nonce},s={},i={}", verifier.salt, verifier.iterations),
            binding: STANDARD.encode(format!("{flag},{authzid},")),
            client_first: bare.to_owned(),
            nonce,
            verifier,
        })
    }

    /// The server's first message.
    pub fn challenge(&self) -> &str {
        &self.server_first
    }

    /// Checks the client's last message; the answer is the server's last one, which proves that it knows the verifier.
    pub fn finish(&self, message: &[u8]) -> Result<String, Refusal> {
        let message = text(message)?;
        let (without_proof, proof) = message
            .rsplit_once(",p=")
            .ok_or(Refusal::Malformed("no proof"))?;
        if attribute(without_proof, "c=") != Some(&self.binding) {
            return Err(Refusal::Malformed("channel binding changed"));
        }
        if attribute(without_proof, "r=") != Some(&self.nonce) {
            return Err(Refusal::Malformed("nonce changed"));
        }
        let proof = STANDARD
            .decode(proof)
            .map_err(|_| Refusal::Malformed("proof is not base64"))?;
        let signed = format!(
            "{},{},{without_proof}",
            self.client_first, self.server_first
        );
        let signature = keyed(&self.verifier.stored_key, &signed);
        if proof.len() != signature.len() {
            return Err(Refusal::Malformed("proof has another length"));
        }
        let client_key: Vec<u8> = proof.iter().zip(&signature).map(|(a, b)| a ^ b).collect();
        if Sha256::digest(&client_key).as_slice() != self.verifier.stored_key {
            return Err(Refusal::WrongPassword);
        }
        let answer = keyed(&self.verifier.server_key, &signed);
        Ok(format!("v={}", STANDARD.encode(answer)))
    }
}

fn text(message: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(message).map_err(|_| Refusal::Malformed("message is not UTF-8"))
}

fn attribute<'a>(message: &'a str, name: &str) -> Option<&'a str> {
    message.split(',').find_map(|part| part.strip_prefix(name))
}

fn keyed(key: &[u8], message: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of every length");
    mac.update(message.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
    use proptest::prelude::*;

    use super::*;

    /// A whole exchange against the client of the library.
    fn exchange(kept: &str, given: &str) -> Result<(), Refusal> {
        let mut client = ScramSha256::new(given.as_bytes(), ChannelBinding::unsupported());
        let exchange = Exchange::begin(Verifier::of(kept), client.message())?;
        client
            .update(exchange.challenge().as_bytes())
            .expect("the challenge is well formed");
        let last = exchange.finish(client.message())?;
        client
            .finish(last.as_bytes())
            .expect("the server proves itself");
        Ok(())
    }

    #[test]
    fn the_example_of_the_standard_is_accepted() {
        // RFC 7677, section 3: user "user", password "pencil".
        let salt = "W22ZaJ0SNY7soEsUEjb6gQ==";
        let mut salted = keyed(b"pencil", "");
        let mut block = STANDARD.decode(salt).expect("base64");
        block.extend([0, 0, 0, 1]);
        let mut last = mac(b"pencil", &block);
        salted.copy_from_slice(&last);
        for _ in 1..4096 {
            last = mac(b"pencil", &last);
            salted.iter_mut().zip(&last).for_each(|(a, b)| *a ^= b);
        }
        let verifier = Verifier {
            iterations: "4096".to_owned(),
            salt: salt.to_owned(),
            stored_key: Sha256::digest(mac(&salted, b"Client Key")).to_vec(),
            server_key: mac(&salted, b"Server Key"),
        };
        let exchange = Exchange::with_nonce(
            verifier,
            b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
            "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
        )
        .expect("well formed");
        let last = exchange.finish(
            b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
              p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        );
        assert_eq!(
            last.as_deref(),
            Ok("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
        );
    }

    fn mac(key: &[u8], message: &[u8]) -> Vec<u8> {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length");
        mac.update(message);
        mac.finalize().into_bytes().to_vec()
    }

    #[test]
    fn a_replayed_nonce_and_a_binding_that_was_not_offered_are_refused() {
        let verifier = Verifier::of("secret");
        let refused = Exchange::begin(verifier.clone(), b"p=tls-unique,,n=,r=abc");
        assert!(matches!(refused, Err(Refusal::Malformed(_))));
        let exchange = Exchange::begin(verifier, b"n,,n=,r=abc").expect("well formed");
        assert_eq!(
            exchange.finish(b"c=biws,r=abc,p=AAAA"),
            Err(Refusal::Malformed("nonce changed"))
        );
    }

    proptest! {
        // 4096 rounds of HMAC twice a case: few cases are enough.
        #![proptest_config(ProptestConfig::with_cases(8))]

        #[test]
        fn the_password_that_is_kept_and_no_other_gets_in(kept in "[ -~]{1,20}", given in "[ -~]{1,20}") {
            prop_assert_eq!(exchange(&kept, &kept), Ok(()));
            if kept != given {
                prop_assert_eq!(exchange(&kept, &given), Err(Refusal::WrongPassword));
            }
        }

        #[test]
        fn no_message_of_a_stranger_makes_it_panic(first in ".{0,60}", last in ".{0,60}") {
            if let Ok(exchange) = Exchange::begin(Verifier::of("secret"), first.as_bytes()) {
                prop_assert!(exchange.finish(last.as_bytes()).is_err());
            }
        }
    }
}
