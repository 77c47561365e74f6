//! `breakage corpus calibrate`: how an embedder's default threshold was found, on the compiled-in seeds.

use anyhow::anyhow;

use crate::cli::Context;
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::embed::BuiltIn;
use crate::experience::calibration::calibrate;
use crate::experience::seeds;

pub(super) fn run(context: &Context, embedder: BuiltIn) -> Result<(), Failure> {
    let embedder = embedder.embedder();
    let calibration = calibrate(embedder.as_ref(), &seeds::entries())
        .map_err(Failure::internal)?
        .ok_or_else(|| Failure::internal(anyhow!("the seeds hold no aligned pair")))?;
    let mut table = Output::table(&[
        "mechanism",
        "incidents",
        "median aligned",
        "median others",
        "nearest other",
    ]);
    for row in &calibration.mechanisms {
        let aligned = row.aligned.map_or("-".to_owned(), |d| format!("{d:.3}"));
        table.add_row([
            row.mechanism.to_string(),
            row.incidents.to_string(),
            aligned,
            format!("{:.3}", row.others),
            format!("{:.3}", row.nearest_other),
        ]);
    }
    context.output.print(&format!(
        "{table}\n\n{}: {} pairs, {} of one mechanism\nthreshold {:.2}: within it {:.1} % of the aligned pairs and \
         {:.1} % of the others (default {:.2})",
        embedder.identity(),
        calibration.pairs,
        calibration.aligned_pairs,
        calibration.threshold,
        calibration.admitted_aligned * 100.0,
        calibration.admitted_others * 100.0,
        embedder.default_max_distance(),
    ))
}
