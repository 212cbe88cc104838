//! Any text as a tracepoint's `format` file, then any bytes as its event. A zero byte parts the two.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trace::Schema;
use trace::tracefs::flags::GfpTable;
use trace::tracefs::format::Format;

fuzz_target!(|bytes: &[u8]| {
    let at = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let (text, raw) = bytes.split_at(at);
    let Ok(text) = std::str::from_utf8(text) else { return };
    let _ = GfpTable::parse(text).decode(u64::MAX);
    let Ok(format) = Format::parse(text) else { return };
    let mut raw = raw.to_vec();
    for field in &format.fields {
        let _ = (field.read(&raw), field.read_text(&raw));
    }
    let mut schema = Schema::default();
    if schema.add(&format) == Ok(true) {
        raw.resize(raw.len().max(2), 0);
        raw[..2].copy_from_slice(&format.id.to_le_bytes());
        let _ = schema.decode(&raw);
    }
});
