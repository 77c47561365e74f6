//! An experiment as one file: everything that a reviewer needs to verify and analyse it, and nothing else.
//!
//! A tar of six named texts, compressed with Zstandard. The same experiment gives the same bytes.

use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};

use serde_json::{Value, json};

use crate::experiment::canonical;
use crate::experiment::ledger::chain::{self, LedgerError};
use crate::experiment::ledger::{Entry, Event};
use crate::experiment::locked::Locked;
use crate::experiment::status::runs;
use crate::experiment::verify::{Broken, Source, Verification, verify};
use crate::ids::{RegistrationHash, RunId};
use crate::record::{RECORD_FORMAT, Record};
use crate::scenario::model::Vocabulary;
use crate::store::{Batch, STORE_FORMAT, Store, StoreError};

/// Version of the bundle's layout.
const FORMAT: u32 = 1;

/// What a bundle may hold once unpacked: a thousand runs take a twentieth of it. More is somebody's trap.
const MAX_UNPACKED_BYTES: u64 = 1 << 30;
/// Of Zstandard's levels: records of one scenario repeat each other, and nobody waits for an export.
const LEVEL: i32 = 15;
/// Files are readable by everybody, and by nobody in particular: the bytes follow from the experiment alone.
const MODE: u32 = 0o644;

const REGISTRATION: &str = "registration.json";
const LEDGER: &str = "ledger.jsonl";
const RECORDS: &str = "records.jsonl";
const CORPUS: &str = "corpus.json";
const VERSIONS: &str = "versions.json";
const README: &str = "README.txt";
/// In the order in which they stand in the file.
const NAMES: [&str; 6] = [README, VERSIONS, REGISTRATION, LEDGER, RECORDS, CORPUS];

#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    #[error("the experiment cannot be read")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("the frozen corpus {0} is not in this workspace")]
    NoCorpus(String),
    #[error("the record of run {0} is not in this workspace")]
    NoRecord(RunId),
    #[error("the bundle cannot be packed")]
    Pack(#[source] std::io::Error),
    #[error("this is no bundle of an experiment: {0}")]
    NotABundle(String),
    #[error("the bundle lacks {0}")]
    Lacks(&'static str),
    #[error("the bundle has format {found}, this breakage knows {FORMAT}")]
    Format { found: u64 },
    #[error("experiment {0} is in this workspace already, with another ledger")]
    Other(RegistrationHash),
    #[error("the bundle is not intact: {place}: {why}")]
    NotIntact { place: String, why: String },
}

/// A bundle's texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// The SHA-256 that `versions.json` claims of the registration.
    pub hash: String,
    pub registration: String,
    /// One entry each, in order.
    pub ledger: Vec<String>,
    /// One record each, in the order of the ledger.
    pub records: Vec<String>,
    pub corpus: String,
    versions: String,
    readme: String,
    /// What the file has beside its texts.
    strange: Vec<String>,
}

/// Compares what is written with what is there, without a second copy of it.
struct Compared<'a> {
    left: &'a [u8],
    same: bool,
}

impl Write for Compared<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self.left.strip_prefix(bytes) {
            Some(left) => self.left = left,
            None => self.same = false,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Bundle {
    /// Everything that the store holds of an experiment.
    pub fn of_store(store: &Store, locked: &Locked) -> Result<Bundle, BundleError> {
        let entries = chain::read(store, &locked.hash)?;
        let ledger = store.ledger(locked.hash.as_str())?;
        let mut records = Vec::new();
        for run in runs(&entries) {
            let missing = || BundleError::NoRecord(run.run_id.clone());
            records.push(store.record_as_kept(&run.run_id)?.ok_or_else(missing)?);
        }
        let sha256 = &locked.registration.corpus.sha256;
        let missing = || BundleError::NoCorpus(sha256.clone());
        let corpus = store.experiment_corpus(sha256)?.ok_or_else(missing)?;
        Ok(Bundle {
            hash: locked.hash.to_string(),
            registration: locked.text.clone(),
            ledger: ledger.into_iter().map(|(_, text)| text).collect(),
            records,
            corpus,
            versions: pretty(&versions(locked.hash.as_str(), locked.registration.format)),
            readme: readme(locked.hash.as_str()),
            strange: Vec::new(),
        })
    }

    /// The file's bytes.
    pub fn pack(&self) -> Result<Vec<u8>, BundleError> {
        let plain = self.tar(Vec::new())?;
        zstd::encode_all(Cursor::new(plain), LEVEL).map_err(BundleError::Pack)
    }

    fn tar<W: Write>(&self, into: W) -> Result<W, BundleError> {
        let mut tar = tar::Builder::new(into);
        for name in NAMES {
            let text = match name {
                README => self.readme.clone(),
                VERSIONS => self.versions.clone(),
                REGISTRATION => self.registration.clone(),
                LEDGER => lines(&self.ledger),
                RECORDS => lines(&self.records),
                _ => self.corpus.clone(),
            };
            let mut header = tar::Header::new_ustar();
            header.set_size(text.len() as u64);
            header.set_mode(MODE);
            header.set_mtime(0);
            tar.append_data(&mut header, name, text.as_bytes())
                .map_err(BundleError::Pack)?;
        }
        tar.into_inner().map_err(BundleError::Pack)
    }

    /// Reads a file. Nothing of it is believed yet but its shape.
    pub fn unpack(bytes: &[u8]) -> Result<Bundle, BundleError> {
        let other = |error: std::io::Error| BundleError::NotABundle(error.to_string());
        let (plain, rest) = decompressed(bytes)?;
        let mut archive = tar::Archive::new(plain.as_slice());
        let mut found: [Option<String>; NAMES.len()] = Default::default();
        for file in archive.entries().map_err(other)? {
            let mut file = file.map_err(other)?;
            let path = file.path().map_err(other)?.display().to_string();
            let Some(at) = NAMES.iter().position(|name| *name == path) else {
                return Err(BundleError::NotABundle(format!("it holds {path:?}")));
            };
            let mut text = String::new();
            file.read_to_string(&mut text).map_err(other)?;
            if found[at].replace(text).is_some() {
                return Err(BundleError::NotABundle(format!("it holds {path} twice")));
            }
        }
        let mut take = |name: &'static str| {
            let at = NAMES.iter().position(|one| *one == name);
            let text = at.and_then(|at| found[at].take());
            text.ok_or(BundleError::Lacks(name))
        };
        let versions = take(VERSIONS)?;
        let told: Value = serde_json::from_str(&versions)
            .map_err(|error| BundleError::NotABundle(format!("{VERSIONS}: {error}")))?;
        let format = told["bundle_format"].as_u64().unwrap_or(0);
        if format != u64::from(FORMAT) {
            return Err(BundleError::Format { found: format });
        }
        let mut bundle = Bundle {
            hash: told["registration"].as_str().unwrap_or_default().to_owned(),
            registration: take(REGISTRATION)?,
            ledger: take(LEDGER)?.lines().map(str::to_owned).collect(),
            records: take(RECORDS)?.lines().map(str::to_owned).collect(),
            corpus: take(CORPUS)?,
            versions,
            readme: take(README)?,
            strange: Vec::new(),
        };
        let written = bundle.tar(Compared {
            left: &plain,
            same: true,
        })?;
        if !written.same || !written.left.is_empty() {
            bundle
                .strange
                .push("its tar holds more than the texts, or is put together otherwise".to_owned());
        }
        if rest > 0 {
            bundle
                .strange
                .push(format!("{rest} bytes stand behind its end"));
        }
        Ok(bundle)
    }

    /// Checks everything, as for an experiment of the store, and that the file holds nothing else.
    pub fn verify(&self, vocabulary: &Vocabulary) -> Verification {
        let (records, extra) = self.by_run();
        let record = |run: &RunId| {
            let found = records.iter().find(|(id, _)| id == run);
            Ok(found.map(|(_, text)| (*text).to_owned()))
        };
        let ledger = (0u64..).zip(self.ledger.iter().cloned()).collect();
        let mut found = verify(&Source {
            hash: self.hash.clone(),
            registration: self.registration.clone(),
            ledger,
            record: &record,
            // Those of a bundle are compared line by line.
            kept: Vec::new(),
            copy: None,
            corpus: Some(self.corpus.clone()),
            vocabulary,
        });
        let strange = self.strange.iter().map(|why| broken("the file", why));
        for one in extra.into_iter().chain(self.beside()).chain(strange) {
            found.found(one.place, one.why);
        }
        found.intact = found.broken.is_empty();
        found
    }

    /// The texts that follow from the others.
    fn beside(&self) -> Vec<Broken> {
        let mut wrong = Vec::new();
        if self.readme != readme(&self.hash) {
            wrong.push(broken(README, "it is not the text that export writes"));
        }
        let told: Value = serde_json::from_str(&self.versions).unwrap_or_default();
        let registration: Value = serde_json::from_str(&self.registration).unwrap_or_default();
        let format = registration["format"].as_u64().unwrap_or_default();
        let mut expected = versions(&self.hash, u32::try_from(format).unwrap_or_default());
        if told["breakage"] != expected["breakage"] {
            // Another breakage wrote it: what its own formats were is not known here.
            for field in ["breakage", "record_format", "store_format"] {
                expected[field] = told[field].clone();
            }
        }
        let fields = expected.as_object().into_iter().flatten();
        let other = fields
            .filter(|(field, value)| told.get(field.as_str()) != Some(*value))
            .map(|(field, value)| format!("field {field} is {}, expected {value}", told[field]));
        let mut other: Vec<String> = other.collect();
        if other.is_empty() && self.versions != pretty(&expected) {
            other.push("it holds more than its fields, or is spelled otherwise".to_owned());
        }
        wrong.extend(other.iter().map(|why| broken(VERSIONS, why)));
        wrong
    }

    /// Puts a bundle that verifies into a store, in one commit. False when it was there already.
    ///
    /// # Errors
    /// A bundle that is not intact, or another ledger of the same registration. Nothing is changed then.
    pub fn import(&self, store: &Store, vocabulary: &Vocabulary) -> Result<bool, BundleError> {
        let found = self.verify(vocabulary);
        if let Some(first) = found.broken.first() {
            return Err(BundleError::NotIntact {
                place: first.place.clone(),
                why: first.why.clone(),
            });
        }
        let here = store.ledger(&self.hash)?;
        if !here.is_empty() {
            let same = here.iter().map(|(_, text)| text).eq(&self.ledger);
            let hash = RegistrationHash::new(self.hash.as_str());
            return if same {
                Ok(false)
            } else {
                Err(BundleError::Other(hash))
            };
        }
        let mut batch = Batch::default();
        batch.registration(&self.hash, self.registration.clone());
        let corpus = canonical_corpus_key(&self.corpus);
        batch.experiment_corpus(&corpus, self.corpus.clone());
        for (seq, text) in (0u64..).zip(&self.ledger) {
            batch.ledger(&self.hash, seq, text.clone());
        }
        for (run, text) in self.by_run().0 {
            batch.record_as_kept(&run, text.to_owned());
        }
        store.write(&batch)?;
        Ok(true)
    }

    /// Whose record each line is, and the lines that are nobody's. A line is the run's whose SHA-256 it has; one with
    /// none of the ledger's is the altered record of the first run that has no line yet.
    fn by_run(&self) -> (Vec<(RunId, &str)>, Vec<Broken>) {
        let mut wrong = Vec::new();
        let told: Vec<Option<(RunId, String)>> =
            self.ledger.iter().filter_map(|text| told(text)).collect();
        let places: BTreeMap<&str, usize> = (0..)
            .zip(&told)
            .filter_map(|(at, run)| Some((run.as_ref()?.1.as_str(), at)))
            .collect();
        let mut line_of: Vec<Option<usize>> = vec![None; told.len()];
        let mut unknown = Vec::new();
        let mut last = None;
        for (line, text) in self.records.iter().enumerate() {
            let name = format!("{RECORDS} line {}", line + 1);
            let Some(at) = places.get(canonical::sha256_hex(text).as_str()).copied() else {
                unknown.push((line, name));
                continue;
            };
            match line_of[at] {
                Some(first) => {
                    let why = format!("line {} is the same record", first + 1);
                    wrong.push(broken(&name, &why));
                    continue;
                }
                None => line_of[at] = Some(line),
            }
            if last.is_some_and(|last| last > at) {
                wrong.push(broken(&name, "it does not stand in the ledger's order"));
            }
            last = last.max(Some(at));
        }
        let mut open = (0..told.len()).filter(|at| line_of[*at].is_none());
        let mut altered = Vec::new();
        for (line, name) in unknown {
            match open.next() {
                Some(at) => altered.push((at, line, name)),
                None => wrong.push(broken(&name, "the ledger has no such record")),
            }
        }
        let mut found = Vec::with_capacity(self.records.len());
        for (at, line) in line_of.iter().enumerate() {
            if let (Some((run, _)), Some(line)) = (&told[at], line) {
                found.push((run.clone(), self.records[*line].as_str()));
            }
        }
        for (at, line, name) in altered {
            let text = self.records[line].as_str();
            // Of an entry that cannot be read the record itself says whose it is.
            let own = || serde_json::from_str::<Record>(text).map(|record| record.run_id);
            match told[at].clone().map_or_else(own, |(run, _)| Ok(run)) {
                Ok(run) => found.push((run, text)),
                Err(error) => wrong.push(broken(&name, &format!("it is no record: {error}"))),
            }
        }
        (found, wrong)
    }
}

fn broken(place: &str, why: &str) -> Broken {
    Broken {
        place: place.to_owned(),
        why: why.to_owned(),
    }
}

/// The one frame's content, and how many bytes stand behind it.
fn decompressed(bytes: &[u8]) -> Result<(Vec<u8>, usize), BundleError> {
    let other = |error: std::io::Error| BundleError::NotABundle(error.to_string());
    let frame = zstd::Decoder::with_buffer(Cursor::new(bytes)).map_err(other)?;
    let mut frame = frame.single_frame();
    let mut plain = Vec::new();
    let limit = MAX_UNPACKED_BYTES + 1;
    let read = frame.by_ref().take(limit).read_to_end(&mut plain);
    if read.map_err(other)? as u64 == limit {
        return Err(BundleError::NotABundle(format!(
            "it unpacks to more than {MAX_UNPACKED_BYTES} bytes"
        )));
    }
    let taken = usize::try_from(frame.finish().position()).unwrap_or(bytes.len());
    Ok((plain, bytes.len() - taken))
}

/// The run of a ledger's line with its record's SHA-256; nothing for a line that tells of no run, and an unknown run for
/// one that cannot be read.
fn told(text: &str) -> Option<Option<(RunId, String)>> {
    match serde_json::from_str::<Entry>(text) {
        Ok(entry) => match entry.event {
            Event::Ran(run) => Some(Some((run.run_id, run.record_sha256))),
            _ => None,
        },
        Err(_) => text.contains("\"kind\":\"ran\"").then_some(None),
    }
}

/// What wrote a bundle.
fn versions(hash: &str, registration_format: u32) -> Value {
    json!({
        "bundle_format": FORMAT,
        "breakage": env!("CARGO_PKG_VERSION"),
        "registration": hash,
        "registration_format": registration_format,
        "record_format": RECORD_FORMAT,
        "store_format": STORE_FORMAT,
    })
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// The hash that a verified corpus names itself by.
fn canonical_corpus_key(corpus: &str) -> String {
    let value: Value = serde_json::from_str(corpus).unwrap_or_default();
    let named = value["sha256"].as_str().map(str::to_owned);
    named.unwrap_or_else(|| canonical::sha256_hex(corpus))
}

fn lines(texts: &[String]) -> String {
    let mut all = String::new();
    for text in texts {
        all.push_str(text);
        all.push('\n');
    }
    all
}

fn readme(hash: &str) -> String {
    format!(
        "A registered experiment of breakage.\n\
         \n\
         {REGISTRATION}  what was locked before the first run; its SHA-256 is {hash}\n\
         {LEDGER}       what happened, one event a line; each `hash` is the SHA-256 of the canonical\n\
         \x20                  JSON (RFC 8785) of {{seq, at, event, prev}}, each `prev` the hash before,\n\
         \x20                  the first `prev` the registration's\n\
         {RECORDS}      the evidence of every run, one a line; the ledger holds each line's SHA-256\n\
         {CORPUS}        the past incidents that were retrieved from, with their vectors\n\
         {VERSIONS}      what wrote this file\n\
         \n\
         With breakage:\n\
         \x20   breakage experiment verify FILE.tar.zst\n\
         \x20   breakage experiment import FILE.tar.zst\n\
         \x20   breakage experiment report {short}\n\
         \n\
         Without it:\n\
         \x20   sha256sum {REGISTRATION}\n\
         \x20   while read -r line; do printf %s \"$line\" | sha256sum; done < {RECORDS}\n\
         The planned run of each line follows by SHA-256 of `<hash>:<block>:<cell>`, in whose order the\n\
         cells of a block were run.\n",
        short = crate::experiment::locked::short(hash),
    )
}
