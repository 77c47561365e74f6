//! How many arrangements there are, exactly: C(400, 200) has 120 digits.

/// Nine decimal digits to a limb, lowest first.
const LIMB: u64 = 1_000_000_000;

/// A product of binomial coefficients.
pub(super) struct Arrangements(Vec<u64>);

impl Arrangements {
    pub(super) fn one() -> Arrangements {
        Arrangements(vec![1])
    }

    /// Times the ways to choose k of n. Every step divides evenly: it stands at a binomial coefficient.
    pub(super) fn choose(mut self, n: usize, k: usize) -> Arrangements {
        for i in 1..=k.min(n - k) {
            self.multiply((n - i + 1) as u64);
            self.divide(i as u64);
        }
        self
    }

    /// Times the ways to set n signs.
    pub(super) fn signs(mut self, n: usize) -> Arrangements {
        for _ in 0..n {
            self.multiply(2);
        }
        self
    }

    fn multiply(&mut self, factor: u64) {
        let mut carry = 0;
        for limb in &mut self.0 {
            let product = *limb * factor + carry;
            *limb = product % LIMB;
            carry = product / LIMB;
        }
        while carry > 0 {
            self.0.push(carry % LIMB);
            carry /= LIMB;
        }
    }

    fn divide(&mut self, divisor: u64) {
        let mut rest = 0;
        for limb in self.0.iter_mut().rev() {
            let value = rest * LIMB + *limb;
            *limb = value / divisor;
            rest = value % divisor;
        }
        while self.0.len() > 1 && self.0.last() == Some(&0) {
            self.0.pop();
        }
    }
}

impl std::fmt::Display for Arrangements {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut limbs = self.0.iter().rev();
        if let Some(first) = limbs.next() {
            write!(f, "{first}")?;
        }
        limbs.try_for_each(|limb| write!(f, "{limb:09}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binomials_have_all_their_digits() {
        let choose = |n, k| Arrangements::one().choose(n, k).to_string();
        assert_eq!(choose(4, 0), "1");
        assert_eq!(choose(8, 4), "70");
        assert_eq!(choose(40, 20), "137846528820");
        assert_eq!(choose(80, 40), "107507208733336176461620");
        assert_eq!(choose(120, 60), "96614908840363322603893139521372656");
        assert_eq!(choose(400, 200).len(), 120);
    }

    #[test]
    fn products_and_signs_are_counted() {
        let three = (0..3).fold(Arrangements::one(), |sum, _| sum.choose(6, 3));
        assert_eq!(three.to_string(), "8000");
        assert_eq!(Arrangements::one().signs(8).to_string(), "256");
        assert_eq!(
            Arrangements::one().signs(100).to_string(),
            "1267650600228229401496703205376"
        );
    }
}
