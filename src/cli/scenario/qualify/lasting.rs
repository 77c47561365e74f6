//! `breakage scenario qualify --context`: in a cluster that outlives the process, in its time, which may take hours.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cli::Context;
use crate::cli::context::{Purpose, connect, restore_command};
use crate::cli::failure::{Failure, INTERRUPTED};
use crate::cli::run::lasting::{make_ready, tell_closed};
use crate::cli::scenario::qualify::{Args, tell};
use crate::clock::{self, Pace};
use crate::cluster::kubeconfig::Chosen;
use crate::inject::journal::Place;
use crate::qualify::in_turn::{Bench, Told};
use crate::qualify::{Materials, QualifyError};
use crate::scenario::model::Scenario;
use crate::store::Store;

pub(super) fn run(
    context: &Context,
    args: &Args,
    materials: &Materials,
    scenarios: &[Arc<Scenario>],
    (store, chosen): (Arc<Store>, Chosen),
) -> Result<ExitCode, Failure> {
    if args.published || args.jobs.is_some_and(|jobs| jobs > 1) {
        return Err(Failure::usage(anyhow::anyhow!(
            "runs in one lasting cluster ({}) go one after another, and the published faults are compared on embedded \
             clusters only; leave --jobs and --published out",
            chosen.context
        )));
    }
    let pace = chosen.pace;
    clock::block_on(pace, async {
        let target = connect(context, chosen, Purpose::Use(&store)).await?;
        make_ready(context, &store, &target).await?;
        let bench = Bench {
            materials,
            target: &target,
            store: &store,
            depth: args.depth,
            again: args.again,
        };
        let mut progress = Progress::new(context, &bench, scenarios, pace);
        let started = Instant::now();
        let qualified = bench.qualify(scenarios, &mut |told| progress.told(&told)).await;
        progress.bar.finish_and_clear();
        let place = Place::of(&target);
        tell_closed(context, &store, &place);
        context.output.note(&format!(
            "{} run{} in {} of wall time",
            progress.ran,
            if progress.ran == 1 { "" } else { "s" },
            in_words(started.elapsed())
        ));
        match qualified {
            Ok(qualifications) => tell(context, args, qualifications),
            Err(QualifyError::Interrupted) => {
                context.output.note(
                    "interrupted; the runs that had come to their end are kept, and the same command goes on from there",
                );
                Ok(ExitCode::from(INTERRUPTED))
            }
            Err(error @ QualifyError::Closed { .. }) => {
                Err(Failure::cluster(error).hint(restore_command(context, &place)))
            }
            Err(error @ QualifyError::NoEvidence { .. }) => Err(Failure::cluster(error)
                .hint("the same command goes on from there once the cluster can be worked with")),
            Err(error) => Err(Failure::internal(error)),
        }
    })
    .map_err(Failure::internal)?
}

/// What is said while it goes on: seconds of the cluster's clock that the runs may take, and how many are behind us.
struct Progress<'a> {
    context: &'a Context,
    bar: indicatif::ProgressBar,
    bench: &'a Bench<'a>,
    pace: Pace,
    ran: u32,
}

impl<'a> Progress<'a> {
    /// Says how long it may take before anything begins.
    fn new(
        context: &'a Context,
        bench: &'a Bench<'a>,
        scenarios: &[Arc<Scenario>],
        pace: Pace,
    ) -> Progress<'a> {
        let longest: Vec<Duration> = scenarios
            .iter()
            .flat_map(|scenario| bench.longest(scenario))
            .map(|(_, longest)| longest / pace.factor())
            .collect();
        let whole: Duration = longest.iter().sum();
        context.output.note(&format!(
            "up to {} runs one after another, which may take up to {}; an interruption loses no more than the run that \
             is under way",
            longest.len(),
            in_words(whole)
        ));
        Progress {
            context,
            bar: context.output.progress_of_time(whole.as_secs(), "runs"),
            bench,
            pace,
            ran: 0,
        }
    }

    fn told(&mut self, told: &Told<'_>) {
        match told {
            Told::Known(known) => {
                let text = format!("{}: known already; --again asks again", known.scenario);
                self.bar.suspend(|| self.context.output.note(&text));
            }
            Told::Begins(scenario, probe) => {
                self.ran += 1;
                self.bar
                    .set_message(format!("{} {}", scenario.id, probe.name()));
            }
            Told::Ended(scenario, probe) => {
                let all = self.bench.longest(scenario);
                let longest = all.iter().find(|(other, _)| other == probe);
                let longest = longest.map_or(Duration::ZERO, |(_, longest)| *longest);
                self.bar.inc((longest / self.pace.factor()).as_secs());
            }
            Told::CutShort(scenario) => {
                let text = format!(
                    "{}: the fault left alone already says no; its other runs are left out",
                    scenario.id
                );
                self.bar.suspend(|| self.context.output.note(&text));
            }
        }
    }
}

/// Hours and minutes, or seconds where it is less than two minutes.
fn in_words(time: Duration) -> String {
    let (minutes, seconds) = (time.as_secs() / 60, time.as_secs());
    match (minutes / 60, minutes) {
        (_, 0..=1) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {} min", minutes % 60),
    }
}
