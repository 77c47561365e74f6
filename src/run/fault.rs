//! The stages of the fault: planned, journaled, written, and seen to show.

use tokio::time::Instant;

use crate::detect::watch::{DEFAULT_MANIFEST_MS, Manifest};
use crate::inject;
use crate::inject::journal::{JournalEntry, Place};
use crate::observe;
use crate::record::FrameworkCode;
use crate::run::event::Event;
use crate::run::stage::{Failed, Run, Stage};
use crate::run::{MANIFEST_DEADLINE, Proven, journal};

impl Run<'_> {
    /// Reads and plans; the entry is on disk before the first write.
    pub(super) async fn inject(&mut self) -> Result<Stage, Failed> {
        let now = self.target.now_text();
        let mut plan = inject::plan(&self.client, &self.order.scenario.injector, &now)
            .await
            .map_err(|error| Failed::because(error.code(), &error))?;
        for warning in plan.warnings.drain(..) {
            (self.emit)(Event::Notice { text: warning });
        }
        self.write_ahead(&plan)?;
        self.proven = Proven::Open;
        let planned = plan.clone();
        // From here on the plan is what the undo goes by, whatever happens to this stage.
        self.plan = Some(plan.clone());
        let written = inject::write::apply(&self.client, &mut plan).await;
        if plan != planned {
            // The server stored other spellings than foreseen; the undo must know them.
            self.plan = Some(plan.clone());
            self.write_ahead(&plan)?;
        }
        written.map_err(|error| Failed::because(error.code(), &error))?;
        Ok(Stage::Manifest)
    }

    fn write_ahead(&self, plan: &inject::change::Plan) -> Result<(), Failed> {
        let entry = JournalEntry::new(
            self.record.run_id.clone(),
            self.order.scenario.id.clone(),
            Place::of(self.target),
            plan.clone(),
        );
        journal(self.setting, &entry)
            .map_err(|error| Failed::because(FrameworkCode::StoreUnavailable, &error))
    }

    /// Waits for the scenario's symptom; never for a rollout, which the fault may prevent.
    pub(super) async fn manifest(&mut self) -> Result<Stage, Failed> {
        let scenario = &self.order.scenario;
        let manifest = Manifest::new(&scenario.manifest_when, &scenario.detector.fixed_when);
        let mut manifest = manifest.watching_from(self.now_ms());
        let deadline = Instant::now() + MANIFEST_DEADLINE;
        observe::until(&self.observer, deadline, |observation| {
            manifest.feed(observation);
            let decided = manifest.shown_ms().is_some() || !manifest.unevaluable().is_empty();
            decided.then_some(())
        })
        .await;
        let unevaluable = manifest.unevaluable();
        if !unevaluable.is_empty() {
            return Err(Failed::new(
                FrameworkCode::DetectorUnevaluable,
                unevaluable.join("; "),
            ));
        }
        if manifest.shown_ms().is_none() {
            if let Some(reason) = manifest.blind() {
                return Err(Failed::blind(&reason));
            }
            return Err(Failed::new(
                FrameworkCode::FaultNotManifest,
                not_shown(&manifest),
            ));
        }
        self.still_in().await?;
        self.record.injected = true;
        Ok(Stage::Work)
    }

    /// The fault stands in the objects that it was written to: what shows is not somebody else's doing.
    async fn still_in(&self) -> Result<(), Failed> {
        let Some(plan) = &self.plan else {
            return Ok(());
        };
        let lost = inject::write::lost(&self.client, plan)
            .await
            .map_err(|error| Failed::because(error.code(), &error))?;
        if lost.is_empty() {
            return Ok(());
        }
        Err(Failed::new(
            FrameworkCode::FaultVanished,
            format!("before the agent began: {}", lost.join("; ")),
        ))
    }
}

/// Why a fault does not count as shown, with what was read last.
fn not_shown(manifest: &Manifest) -> String {
    let deadline = MANIFEST_DEADLINE.as_secs();
    let missing = manifest.missing().join("; ");
    if manifest.is_own() {
        return format!("not shown within {deadline} s: manifest_when does not hold: {missing}");
    }
    let seconds = DEFAULT_MANIFEST_MS / 1000;
    if missing.is_empty() {
        return format!(
            "not shown within {deadline} s: the fixed_when conditions were never all false for {seconds} s without a \
             break; give the scenario a manifest_when"
        );
    }
    format!(
        "not shown within {deadline} s: of fixed_when still holds {missing}, so the fault does not show (every \
         condition must be false for {seconds} s); give the scenario a manifest_when"
    )
}
