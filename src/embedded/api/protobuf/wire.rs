//! The wire format of protobuf: numbered fields, each a number or some bytes.

/// The bytes end in the middle of a field.
#[derive(Debug)]
pub(super) struct Truncated;

/// What a field holds.
#[derive(Debug)]
pub(super) enum Payload<'a> {
    Number(i64),
    Bytes(&'a [u8]),
    /// Fixed-size numbers, which no field of the table is.
    Other,
}

impl Payload<'_> {
    /// Text; empty for what is none.
    pub(super) fn text(&self) -> String {
        match self {
            Payload::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Payload::Number(_) | Payload::Other => String::new(),
        }
    }
}

/// Reads the fields of a message one after another.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// The next field's number and content; nothing at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Payload<'a>)>, Truncated> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let payload = match tag & 7 {
            // Negative numbers are sent as ten bytes of two's complement.
            0 => Payload::Number(self.varint()?.cast_signed()),
            1 => {
                self.take(8)?;
                Payload::Other
            }
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| Truncated)?;
                Payload::Bytes(self.take(length)?)
            }
            5 => {
                self.take(4)?;
                Payload::Other
            }
            _ => return Err(Truncated),
        };
        Ok(Some((tag >> 3, payload)))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Truncated> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, Truncated> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Truncated)
    }
}
