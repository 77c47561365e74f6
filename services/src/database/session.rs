//! One client of the database: how it gets in, and the few statements that are answered.

use std::fmt::Debug;
use std::sync::Arc;

use acme_services::{VERSION, api};
use async_trait::async_trait;
use futures::sink::Sink;
use futures::stream;
use pgwire::api::auth::driver::AuthOutcome;
use pgwire::api::auth::mechanism::{AuthMechanism, AuthState};
use pgwire::api::auth::{
    AuthDriver, DefaultServerParameterProvider, StartupHandler, protocol_negotiation,
    save_startup_parameters_to_metadata,
};
use pgwire::api::query::SimpleQueryHandler;
use pgwire::api::results::{DataRowEncoder, FieldFormat, FieldInfo, QueryResponse, Response};
use pgwire::api::store::PortalStore;
use pgwire::api::{
    ClientInfo, ClientPortalStore, METADATA_DATABASE, METADATA_USER, PgWireServerHandlers, Type,
};
use pgwire::error::{ErrorInfo, PgWireError, PgWireResult};
use pgwire::messages::startup::{Authentication, PasswordMessageFamily};
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};

use crate::database::scram::{Exchange, MECHANISM, Refusal, Verifier};
use crate::line;

/// SQLSTATE of what is refused.
const INVALID_PASSWORD: &str = "28P01";
const PROTOCOL_VIOLATION: &str = "08P01";
const INVALID_CATALOG_NAME: &str = "3D000";
const FEATURE_NOT_SUPPORTED: &str = "0A000";
/// The database that every server has.
const MAINTENANCE: &str = "postgres";
/// As clients ask for it: they decide by it what they may use.
const SERVER_VERSION: &str = "15.14";

/// What the server knows: its user, the password's verifier, its database.
#[derive(Debug)]
pub struct Server {
    user: String,
    database: String,
    verifier: Verifier,
    /// Challenges those who name another user, so that they learn no more than by a wrong password.
    stranger: Verifier,
}

impl Server {
    /// A server of one user and one database.
    pub fn new(user: &str, password: &str, database: &str) -> Server {
        let unknown: [u8; 18] = rand::random();
        Server {
            user: user.to_owned(),
            database: database.to_owned(),
            verifier: Verifier::of(password),
            stranger: Verifier::of(&format!("{unknown:?}")),
        }
    }

    fn check_database(&self, name: &str) -> PgWireResult<()> {
        if name == self.database || name == MAINTENANCE {
            return Ok(());
        }
        let message = format!("database \"{name}\" does not exist");
        line::postgres(std::process::id(), &format!("FATAL:  {message}"));
        Err(fatal(INVALID_CATALOG_NAME, &message))
    }
}

fn fatal(code: &str, message: &str) -> PgWireError {
    let info = ErrorInfo::new("FATAL".to_owned(), code.to_owned(), message.to_owned());
    PgWireError::UserError(Box::new(info))
}

/// The state of one client's login.
#[derive(Debug)]
struct Login {
    server: Arc<Server>,
    exchange: Option<Exchange>,
}

impl Login {
    fn refuse(&self, user: &str, refusal: &Refusal) -> PgWireError {
        let message = match refusal {
            Refusal::WrongPassword => format!("password authentication failed for user \"{user}\""),
            Refusal::Malformed(what) => {
                return fatal(
                    PROTOCOL_VIOLATION,
                    &format!("malformed SCRAM message: {what}"),
                );
            }
        };
        let process = std::process::id();
        line::postgres(process, &format!("FATAL:  {message}"));
        if user != self.server.user {
            line::postgres(
                process,
                &format!("DETAIL:  Role \"{user}\" does not exist."),
            );
        }
        fatal(INVALID_PASSWORD, &message)
    }
}

#[async_trait]
impl AuthMechanism for Login {
    async fn begin(&mut self, _: &(dyn ClientInfo + Send + Sync)) -> PgWireResult<AuthState> {
        let offer = Authentication::SASL(vec![MECHANISM.to_owned()]);
        Ok(AuthState::InProgress(offer))
    }

    async fn next(
        &mut self,
        client: &(dyn ClientInfo + Send + Sync),
        message: PasswordMessageFamily,
    ) -> PgWireResult<AuthState> {
        let user = metadata(client, METADATA_USER);
        let Some(exchange) = &self.exchange else {
            let first = message.into_sasl_initial_response()?;
            if first.auth_method != MECHANISM {
                let what = "client selected an invalid SASL authentication mechanism";
                return Err(fatal(PROTOCOL_VIOLATION, what));
            }
            let verifier = match user == self.server.user {
                true => self.server.verifier.clone(),
                false => self.server.stranger.clone(),
            };
            let exchange = Exchange::begin(verifier, &first.data.unwrap_or_default())
                .map_err(|refusal| self.refuse(&user, &refusal))?;
            let challenge = exchange.challenge().to_owned();
            self.exchange = Some(exchange);
            let challenge = Authentication::SASLContinue(challenge.into());
            return Ok(AuthState::InProgress(challenge));
        };
        let last = exchange
            .finish(&message.into_sasl_response()?.data)
            .map_err(|refusal| self.refuse(&user, &refusal))?;
        Ok(AuthState::Ok {
            final_message: Some(Authentication::SASLFinal(last.into())),
            identity: None,
        })
    }
}

fn metadata(client: &(dyn ClientInfo + Send + Sync), name: &str) -> String {
    client.metadata().get(name).cloned().unwrap_or_default()
}

/// Lets clients in.
struct Startup {
    server: Arc<Server>,
    driver: AuthDriver<DefaultServerParameterProvider>,
}

#[async_trait]
impl StartupHandler for Startup {
    async fn on_startup<C>(
        &self,
        client: &mut C,
        message: PgWireFrontendMessage,
    ) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let outcome = match message {
            PgWireFrontendMessage::Startup(ref startup) => {
                protocol_negotiation(client, startup).await?;
                save_startup_parameters_to_metadata(client, startup);
                let login = Login {
                    server: self.server.clone(),
                    exchange: None,
                };
                self.driver
                    .begin_authentication(client, Box::new(login))
                    .await?
            }
            PgWireFrontendMessage::PasswordMessageFamily(message) => {
                self.driver.advance_authentication(client, message).await?
            }
            _ => return Ok(()),
        };
        if let AuthOutcome::Authenticated { final_message, .. } = outcome {
            // As in Postgres, only those who got in learn which databases there are. One not named is the user's.
            let named = client.metadata().get(METADATA_DATABASE);
            let name = named.unwrap_or(&self.server.user).clone();
            self.server.check_database(&name)?;
            self.driver
                .complete_authentication(client, final_message)
                .await?;
        }
        Ok(())
    }
}

/// What a connection is handed to.
pub struct Handlers {
    startup: Arc<Startup>,
    statements: Arc<Statements>,
}

impl Handlers {
    /// Handlers for a server's connections.
    pub fn new(server: Server) -> Handlers {
        let mut parameters = DefaultServerParameterProvider::default();
        parameters.server_version = SERVER_VERSION.to_owned();
        Handlers {
            startup: Arc::new(Startup {
                server: Arc::new(server),
                driver: AuthDriver::new(parameters),
            }),
            statements: Arc::new(Statements),
        }
    }
}

impl PgWireServerHandlers for Handlers {
    fn startup_handler(&self) -> Arc<impl StartupHandler> {
        self.startup.clone()
    }

    fn simple_query_handler(&self) -> Arc<impl SimpleQueryHandler> {
        self.statements.clone()
    }
}

/// Answers statements.
struct Statements;

#[async_trait]
impl SimpleQueryHandler for Statements {
    async fn do_query<C>(&self, _: &mut C, query: &str) -> PgWireResult<Vec<Response>>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        query
            .split(';')
            .filter(|statement| !statement.trim().is_empty())
            .map(statement)
            .collect()
    }
}

fn statement(text: &str) -> PgWireResult<Response> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let plain = words.join(" ").to_lowercase();
    if plain == api::CASES_QUERY.to_lowercase() {
        let columns = [
            ("id", Type::INT8),
            ("title", Type::TEXT),
            ("opened_at", Type::TIMESTAMPTZ),
        ];
        return table(&columns, None);
    }
    match plain.as_str() {
        "select 1" => table(&[("?column?", Type::INT4)], Some("1")),
        "select version()" => {
            let version = format!("PostgreSQL {SERVER_VERSION} (advocate-db {VERSION})");
            table(&[("version", Type::TEXT)], Some(&version))
        }
        _ => {
            let message = "this statement is not supported";
            let process = std::process::id();
            line::postgres(process, &format!("ERROR:  {message}"));
            line::postgres(process, &format!("STATEMENT:  {}", words.join(" ")));
            Ok(Response::Error(Box::new(ErrorInfo::new(
                "ERROR".to_owned(),
                FEATURE_NOT_SUPPORTED.to_owned(),
                message.to_owned(),
            ))))
        }
    }
}

/// A table of these columns with no row, or with one of one value.
fn table(columns: &[(&str, Type)], value: Option<&str>) -> PgWireResult<Response> {
    let fields = columns
        .iter()
        .map(|(name, kind)| {
            FieldInfo::new((*name).into(), None, None, kind.clone(), FieldFormat::Text)
        })
        .collect();
    let schema = Arc::new(fields);
    let mut rows = Vec::new();
    if let Some(value) = value {
        let mut encoder = DataRowEncoder::new(Arc::clone(&schema));
        encoder.encode_field_with_type_and_format(
            &value,
            &Type::TEXT,
            FieldFormat::Text,
            &Default::default(),
        )?;
        rows.push(Ok(encoder.take_row()));
    }
    Ok(Response::Query(QueryResponse::new(
        schema,
        stream::iter(rows),
    )))
}
