//! Just enough of Kubernetes quantities to compare and to double: whole thousandths, decimal and binary suffixes.

/// Reads a quantity in thousandths of its unit: `500m` is 500, `1` is 1000, `1Ki` is 1024000.
pub fn thousandths(text: &str) -> Option<i128> {
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (digits, suffix) = text.split_at(split);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let factor: i128 = match suffix {
        "m" => 1,
        "" => 1_000,
        "k" => 1_000_000,
        "M" => 1_000_000_000,
        "G" => 1_000_000_000_000,
        "T" => 1_000_000_000_000_000,
        "Ki" => 1_000 << 10,
        "Mi" => 1_000 << 20,
        "Gi" => 1_000 << 30,
        "Ti" => 1_000 << 40,
        _ => return None,
    };
    let whole: i128 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    // Six digits after the point are more than anyone writes.
    let kept = fraction.get(..6).unwrap_or(fraction);
    let part: i128 = if kept.is_empty() {
        0
    } else {
        kept.parse().ok()?
    };
    let scale = 10i128.checked_pow(u32::try_from(kept.len()).ok()?)?;
    whole
        .checked_mul(factor)?
        .checked_add(part.checked_mul(factor)? / scale)
}

/// Bytes in whole mebibytes, rounded up: `64Mi`.
pub fn mebibytes(thousandths: i128) -> String {
    let unit = 1_000i128 << 20;
    format!("{}Mi", (thousandths + unit - 1) / unit)
}

/// Cores in thousandths: `250m`.
pub fn millicores(thousandths: i128) -> String {
    format!("{thousandths}m")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_exactly() {
        let table = [
            ("10m", Some(10)),
            ("32", Some(32_000)),
            ("0.5", Some(500)),
            ("1Ki", Some(1_024_000)),
            ("1.5Gi", Some(1_610_612_736_000)),
            ("", None),
            ("Mi", None),
            ("4x", None),
        ];
        for (text, expected) in table {
            assert_eq!(thousandths(text), expected, "{text}");
        }
        assert_eq!(mebibytes(thousandths("65M").unwrap()), "62Mi");
    }
}
