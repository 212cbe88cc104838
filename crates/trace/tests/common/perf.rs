//! Builds `perf.data` files, byte by byte, so that tests know what is in them.

#![allow(dead_code, unreachable_pub, missing_docs)]

/// IP, TID, TIME, CPU, PERIOD, RAW: what perf asks of tracepoints.
pub const SAMPLE_TYPE: u64 = 1 | 2 | 4 | 1 << 7 | 1 << 8 | 1 << 10;

const ALLOC_FORMAT: &str = "name: mm_page_alloc\nID: 653\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:unsigned long pfn;\toffset:8;\tsize:8;\tsigned:0;\n\
    \tfield:unsigned int order;\toffset:16;\tsize:4;\tsigned:0;\n\
    \tfield:unsigned long gfp_flags;\toffset:24;\tsize:8;\tsigned:0;\n\
    \tfield:int migratetype;\toffset:32;\tsize:4;\tsigned:1;\n\n\
    print fmt: \"%s\", __print_flags(REC->gfp_flags, \"|\", {(unsigned long)((( gfp_t)(0x400u|0x800u)) | \
    (( gfp_t)0x40u) | (( gfp_t)0x80u)), \"GFP_KERNEL\"}, {(unsigned long)(( gfp_t)0x40u), \"__GFP_IO\"}, \
    {(unsigned long)(( gfp_t)0x80u), \"__GFP_FS\"}, {(unsigned long)(( gfp_t)0x400u), \"__GFP_DIRECT_RECLAIM\"}, \
    {(unsigned long)(( gfp_t)((1UL) << (8))), \"__GFP_ZERO\"})\n";

const FREE_FORMAT: &str = "name: mm_page_free\nID: 655\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:unsigned long pfn;\toffset:8;\tsize:8;\tsigned:0;\n\
    \tfield:unsigned int order;\toffset:16;\tsize:4;\tsigned:0;\n\nprint fmt: \"x\", REC->pfn\n";

/// A `perf.data` in the making.
#[derive(Default)]
pub struct PerfData {
    data: Vec<u8>,
}

fn put(out: &mut Vec<u8>, numbers: &[u64]) {
    for number in numbers {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

fn put32(out: &mut Vec<u8>, numbers: &[u32]) {
    for number in numbers {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

impl PerfData {
    pub fn record(&mut self, kind: u32, body: &[u8]) -> &mut Self {
        put32(&mut self.data, &[kind]);
        self.data.extend_from_slice(&[0, 0]);
        self.data.extend_from_slice(&(body.len() as u16 + 8).to_le_bytes());
        self.data.extend_from_slice(body);
        self
    }

    fn sample(&mut self, (time, cpu, tid): (u64, u32, u32), raw: &[u8]) -> &mut Self {
        let mut body = vec![];
        put(&mut body, &[0xffff]);
        put32(&mut body, &[tid, tid]);
        put(&mut body, &[time, u64::from(cpu), 1]);
        put32(&mut body, &[raw.len() as u32]);
        body.extend_from_slice(raw);
        self.record(9, &body)
    }

    pub fn alloc(&mut self, at: (u64, u32, u32), pfn: u64, order: u32, gfp: u64) -> &mut Self {
        let mut raw = vec![];
        put32(&mut raw, &[653, at.2]);
        put(&mut raw, &[pfn]);
        put32(&mut raw, &[order, 0]);
        put(&mut raw, &[gfp]);
        put32(&mut raw, &[1, 0]);
        self.sample(at, &raw)
    }

    pub fn free(&mut self, at: (u64, u32, u32), pfn: u64, order: u32) -> &mut Self {
        let mut raw = vec![];
        put32(&mut raw, &[655, at.2]);
        put(&mut raw, &[pfn]);
        put32(&mut raw, &[order, 0]);
        self.sample(at, &raw)
    }

    /// What follows records that are no samples.
    fn trailer(body: &mut Vec<u8>, (time, cpu, tid): (u64, u32, u32)) {
        put32(body, &[tid, tid]);
        put(body, &[time, u64::from(cpu)]);
    }

    pub fn comm(&mut self, at: (u64, u32, u32), name: &str) -> &mut Self {
        let mut body = vec![];
        put32(&mut body, &[at.2, at.2]);
        body.extend_from_slice(name.as_bytes());
        body.resize(8 + (name.len() + 8) / 8 * 8, 0);
        Self::trailer(&mut body, at);
        self.record(3, &body)
    }

    pub fn lost(&mut self, at: (u64, u32, u32), count: u64) -> &mut Self {
        let mut body = vec![];
        put(&mut body, &[0, count]);
        Self::trailer(&mut body, at);
        self.record(2, &body)
    }

    pub fn finished_round(&mut self) -> &mut Self {
        self.record(68, &[])
    }

    /// The records as one that is packed with zstd, as `perf record -z` does.
    pub fn packed(&self) -> Self {
        let mut packed = Self::default();
        let bytes = zstd::bulk::compress(&self.data, 1).unwrap();
        bytes.chunks(50).for_each(|part| {
            packed.record(81, part);
        });
        packed
    }

    pub fn build(&self) -> Vec<u8> {
        let attr = attr();
        let mut out = b"PERFILE2".to_vec();
        let data = 104 + attr.len() as u64;
        put(&mut out, &[104, attr.len() as u64, 104, attr.len() as u64, data, self.data.len() as u64, 0, 0]);
        // Tracing data, release, CPUs.
        put(&mut out, &[1 << 1 | 1 << 4 | 1 << 7, 0, 0, 0]);
        out.extend_from_slice(&attr);
        out.extend_from_slice(&self.data);
        let sections =
            [tracing_data(), text("6.1.0-test"), [4u32.to_le_bytes(), 4u32.to_le_bytes()].concat()];
        let mut at = out.len() as u64 + 16 * sections.len() as u64;
        for section in &sections {
            put(&mut out, &[at, section.len() as u64]);
            at += section.len() as u64;
        }
        out.extend(sections.concat());
        out
    }
}

fn attr() -> Vec<u8> {
    let mut attr = vec![];
    put32(&mut attr, &[2, 112]);
    put(&mut attr, &[653, 1, SAMPLE_TYPE, 0, 1 << 18 | 1 << 25]);
    attr.resize(92, 0);
    put32(&mut attr, &[1]);
    attr.resize(112, 0);
    put(&mut attr, &[0, 0]);
    attr
}

fn text(text: &str) -> Vec<u8> {
    let mut out = (text.len() as u32 + 1).to_le_bytes().to_vec();
    out.extend_from_slice(text.as_bytes());
    out.push(0);
    out
}

fn tracing_data() -> Vec<u8> {
    let mut out = b"\x17\x08\x44tracing0.6\0\0\x08".to_vec();
    put32(&mut out, &[4096]);
    out.extend_from_slice(b"header_page\0");
    put(&mut out, &[0]);
    out.extend_from_slice(b"header_event\0");
    put(&mut out, &[0]);
    put32(&mut out, &[0, 1]);
    out.extend_from_slice(b"kmem\0");
    put32(&mut out, &[2]);
    for format in [ALLOC_FORMAT, FREE_FORMAT] {
        put(&mut out, &[format.len() as u64]);
        out.extend_from_slice(format.as_bytes());
    }
    out
}
