//! The `format` file of a tracepoint.

/// A tracepoint as its `format` file describes it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Format {
    /// The event's name without its system's: `mm_page_alloc`.
    pub name: String,
    /// The number that events carry in their first two bytes.
    pub id: u16,
    /// Its fields.
    pub fields: Vec<Field>,
    /// How the kernel prints it: what follows `print fmt: `.
    pub print: String,
}

/// A field of a tracepoint.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Bytes from the event's start.
    pub offset: usize,
    /// Its size in bytes.
    pub size: usize,
    /// Whether it is a signed number.
    pub signed: bool,
    /// Whether it says where a string lies in the event, instead of holding it.
    pub is_data_loc: bool,
}

impl Format {
    /// Reads a `format` file.
    ///
    /// # Errors
    /// Says which line is missing or cannot be read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut format = Self::default();
        let mut has_id = false;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("name: ") {
                name.trim().clone_into(&mut format.name);
            } else if let Some(id) = line.strip_prefix("ID: ") {
                let id = id.trim().parse();
                format.id = id.map_err(|_| format!("{}: ID is not a number below 65536", format.name))?;
                has_id = true;
            } else if let Some(field) = line.trim_start().strip_prefix("field:") {
                let parsed = parse_field(field);
                format.fields.push(parsed.ok_or_else(|| format!("{}: field {field:?}", format.name))?);
            } else if let Some(print) = line.strip_prefix("print fmt: ") {
                print.clone_into(&mut format.print);
            }
        }
        if format.name.is_empty() || !has_id {
            return Err("a tracepoint's format has no name or no ID".into());
        }
        Ok(format)
    }

    /// The field called `name`.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// `unsigned long pfn; offset:8; size:8; signed:0;`, with tabs between.
fn parse_field(line: &str) -> Option<Field> {
    let mut field = Field::default();
    let mut parts = line.split(';').map(str::trim);
    let declaration = parts.next()?;
    let declaration = declaration
        .split('[')
        .next()
        .filter(|_| !declaration.starts_with("__data_loc"))
        .unwrap_or(declaration);
    field.is_data_loc = declaration.starts_with("__data_loc");
    declaration.rsplit([' ', '*']).next()?.clone_into(&mut field.name);
    for part in parts.filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once(':')?;
        let number: u16 = value.parse().ok()?;
        match key {
            "offset" => field.offset = usize::from(number),
            "size" => field.size = usize::from(number),
            "signed" => field.signed = number != 0,
            _ => {}
        }
    }
    (!field.name.is_empty() && field.size > 0).then_some(field)
}

impl Field {
    /// The field's value in `raw`; a signed one is widened. `None` if it lies outside or is no number.
    #[inline]
    pub fn read(&self, raw: &[u8]) -> Option<u64> {
        let bytes = raw.get(self.offset..self.offset + self.size)?;
        Some(match *bytes {
            [a] if self.signed => a as i8 as u64,
            [a] => u64::from(a),
            [a, b] if self.signed => i16::from_le_bytes([a, b]) as u64,
            [a, b] => u64::from(u16::from_le_bytes([a, b])),
            [a, b, c, d] if self.signed => i32::from_le_bytes([a, b, c, d]) as u64,
            [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
            _ => u64::from_le_bytes(bytes.try_into().ok()?),
        })
    }

    /// The text that the field holds or points to, up to its first zero byte.
    pub fn read_text<'a>(&self, raw: &'a [u8]) -> Option<&'a [u8]> {
        let bytes = if self.is_data_loc {
            let location = self.read(raw)?;
            let (start, len) = ((location & 0xffff) as usize, (location >> 16 & 0xffff) as usize);
            raw.get(start..start + len)?
        } else {
            raw.get(self.offset..self.offset + self.size)?
        };
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Some(&bytes[..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: &str = "name: mm_page_free\nID: 655\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:unsigned long pfn;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:char comm[16];\toffset:16;\tsize:16;\tsigned:0;\n\
        \tfield:const void * ptr;\toffset:32;\tsize:8;\tsigned:0;\n\
        \tfield:__data_loc char[] name;\toffset:40;\tsize:4;\tsigned:0;\n\nprint fmt: \"pfn=0x%lx\", REC->pfn\n";

    #[test]
    fn fields_have_their_names() {
        let format = Format::parse(FREE).unwrap();
        assert_eq!((format.name.as_str(), format.id), ("mm_page_free", 655));
        let names: Vec<_> = format.fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["common_type", "common_pid", "pfn", "comm", "ptr", "name"]);
        assert_eq!(format.print, "\"pfn=0x%lx\", REC->pfn");
    }

    #[test]
    fn values_are_read() {
        let format = Format::parse(FREE).unwrap();
        let mut raw = vec![0; 52];
        raw[4..8].copy_from_slice(&(-2i32).to_le_bytes());
        raw[8] = 7;
        raw[16..20].copy_from_slice(b"bash");
        raw[40..44].copy_from_slice(&(0x2c_u32 | 5 << 16).to_le_bytes());
        raw[44..48].copy_from_slice(b"vm_a");
        assert_eq!(format.field("common_pid").unwrap().read(&raw), Some(-2i64 as u64));
        assert_eq!(format.field("pfn").unwrap().read(&raw), Some(7));
        assert_eq!(format.field("pfn").unwrap().read(&raw[..12]), None);
        assert_eq!(format.field("comm").unwrap().read_text(&raw), Some(&b"bash"[..]));
        assert_eq!(format.field("name").unwrap().read_text(&raw), Some(&b"vm_a"[..]));
    }

    #[test]
    fn what_is_missing_is_told() {
        assert!(Format::parse("").is_err());
        assert!(Format::parse("name: x\nID: 70000\n").unwrap_err().contains("65536"));
        assert!(Format::parse("name: x\nID: 7\n\tfield:int a;\toffset:x;\tsize:4;\n").is_err());
    }
}
