//! A ledger read for analysis: the final outcome of every planned run, by cell and block.

use std::collections::BTreeMap;

use crate::experiment::ledger::{Entry, Event, Exposure, RunEntry, RunOutcome, ScoreLine};
use crate::experiment::plan::{Cell, Plan};
use crate::experiment::registration::Registration;
use crate::ids::{ArmId, MicroPoints, ScenarioId};

/// A run that counts.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    pub block: u32,
    /// The place in the order in which runs were begun.
    pub order: u64,
    pub timeout: bool,
    pub score: ScoreLine,
    pub exposure: Exposure,
}

impl Counted {
    pub(super) fn total(&self) -> i64 {
        i64::from(self.score.total.0)
    }
}

/// What became of the planned runs of one cell.
#[derive(Clone, Debug, Default)]
pub(super) struct CellData {
    /// By block.
    pub counted: BTreeMap<u32, Counted>,
    /// Blocks whose run ended in a failure of ours, with its code.
    pub excluded: BTreeMap<u32, String>,
    pub not_run: u32,
    pub started: u32,
    pub retried: u32,
    /// Runs, failed ones too, that were served something.
    pub exposed_attempts: u32,
}

/// Of the registered rubric.
#[derive(Clone, Copy, Debug)]
pub(super) struct Credits {
    pub near_miss: MicroPoints,
}

/// A registration's plan with what its ledger says of every cell.
pub(super) struct Data<'a> {
    pub plan: &'a Plan,
    /// What the registered rubric says of a near miss.
    pub credits: Credits,
    cells: BTreeMap<Cell, CellData>,
}

impl<'a> Data<'a> {
    /// Runs of blocks from `blocks` on are left out, for a look at a part.
    pub(super) fn read(registration: &'a Registration, entries: &[Entry], blocks: u32) -> Data<'a> {
        let plan = &registration.plan;
        let mut cells: BTreeMap<Cell, CellData> = plan
            .cells()
            .into_iter()
            .map(|cell| (cell, CellData::default()))
            .collect();
        for entry in entries {
            if let Event::Ran(run) = &entry.event
                && run.block < blocks
                && let Some(cell) = cells.get_mut(&run.cell)
            {
                cell.take(run);
            }
        }
        let credits = Credits {
            near_miss: registration.rubric.near_miss,
        };
        Data {
            plan,
            credits,
            cells,
        }
    }

    /// Cells in the order of the plan.
    pub(super) fn cells(&self) -> impl Iterator<Item = (Cell, &CellData)> {
        self.plan.cells().into_iter().filter_map(|cell| {
            let data = self.cells.get(&cell)?;
            Some((cell, data))
        })
    }

    pub(super) fn cell(&self, scenario: &ScenarioId, side: &Side) -> Option<&CellData> {
        self.cells.get(&Cell {
            scenario: scenario.clone(),
            arm: side.arm.clone(),
            tier: side.tier.clone(),
        })
    }
}

/// An arm at a tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Side {
    pub arm: ArmId,
    pub tier: Option<String>,
}

impl CellData {
    fn take(&mut self, run: &RunEntry) {
        self.started += u32::from(run.actual.is_some() && run.attempt == 0);
        self.retried += u32::from(run.actual.is_some() && run.attempt > 0);
        self.exposed_attempts += u32::from(!run.exposure.served.is_empty());
        if !run.is_final {
            return;
        }
        let (score, timeout) = match &run.outcome {
            RunOutcome::Scored { score } => (score, false),
            RunOutcome::Timeout { score } => (score, true),
            RunOutcome::FrameworkError { code, .. } => {
                self.excluded.insert(run.block, code.as_str().to_owned());
                return;
            }
            RunOutcome::NotRun { .. } => {
                self.not_run += 1;
                return;
            }
        };
        let counted = Counted {
            block: run.block,
            order: run.actual.unwrap_or(run.planned),
            timeout,
            score: score.clone(),
            exposure: run.exposure.clone(),
        };
        self.counted.insert(run.block, counted);
    }

    /// Totals in micro-points, by block.
    pub(super) fn totals(&self) -> Vec<i64> {
        self.counted.values().map(Counted::total).collect()
    }

    /// Planned runs that will not count.
    pub(super) fn lost(&self) -> u32 {
        u32::try_from(self.excluded.len()).unwrap_or(u32::MAX)
    }
}

/// Two arms of one scenario, as numbers by block.
#[derive(Clone, Debug, Default)]
pub(super) struct Contest {
    pub treatment: BTreeMap<u32, i64>,
    pub control: BTreeMap<u32, i64>,
}

impl Contest {
    /// Under any way to score a run.
    pub(super) fn scored(
        treatment: &CellData,
        control: &CellData,
        total: impl Fn(&Counted) -> i64,
    ) -> Contest {
        let of = |cell: &CellData| {
            let runs = cell.counted.iter();
            runs.map(|(block, run)| (*block, total(run))).collect()
        };
        Contest {
            treatment: of(treatment),
            control: of(control),
        }
    }

    /// The totals of blocks in which both ran, treatment first.
    pub(super) fn pairs(&self) -> (Vec<i64>, Vec<i64>) {
        let both = self.treatment.iter().filter_map(|(block, x)| {
            let y = self.control.get(block)?;
            Some((*x, *y))
        });
        both.unzip()
    }
}

/// Millionths as a decimal.
pub(super) fn decimal(micro: i64) -> f64 {
    micro as f64 / f64::from(MicroPoints::ONE.0)
}
