//! The connection to the database.

use std::time::Duration;

use acme_services::api::{CASES_QUERY, CONNECT_LIMIT_MS};
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

use crate::line::chain;

/// One connection, made anew when it was lost.
pub struct Store {
    config: Config,
    client: Mutex<Client>,
}

impl Store {
    /// Connects to the database of a URL. The error is a text for the log.
    pub async fn connect(url: &str) -> Result<Store, String> {
        let config: Config = url
            .parse()
            .map_err(|error: tokio_postgres::Error| chain(&error))?;
        let client = Mutex::new(open(&config).await?);
        Ok(Store { config, client })
    }

    /// The cases as JSON. The error is a text for the log.
    pub async fn cases(&self) -> Result<String, String> {
        let mut client = self.client.lock().await;
        if client.is_closed() {
            *client = open(&self.config).await?;
        }
        let messages = client
            .simple_query(CASES_QUERY)
            .await
            .map_err(|error| chain(&error))?;
        let cases: Vec<Value> = messages
            .iter()
            .filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(row),
                _ => None,
            })
            .map(|row| {
                row.columns()
                    .iter()
                    .enumerate()
                    .map(|(at, column)| (column.name().to_owned(), Value::from(row.get(at))))
                    .collect::<Map<_, _>>()
                    .into()
            })
            .collect();
        Ok(format!("{}\n", json!({ "cases": cases })))
    }
}

async fn open(config: &Config) -> Result<Client, String> {
    let limit = Duration::from_millis(CONNECT_LIMIT_MS);
    let (client, connection) = tokio::time::timeout(limit, config.connect(NoTls))
        .await
        .map_err(|_| format!("timed out after {}s", limit.as_secs()))?
        .map_err(|error| chain(&error))?;
    // Ends with the client; an error on the way shows in the next query.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(client)
}
