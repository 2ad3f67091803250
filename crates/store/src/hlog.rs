//! `histograms/<test>.hlog`: the HdrHistogram interval log, version 1.3, as written by the Java and C HdrHistogramLogWriter.
//! One interval (the window) per kind of latency, named by its tag. Values are in ns, the column Interval_Max is in ms.
//!
//! Buckets lose the exact sum and maximum. Comment lines, which other tools skip, hold them:
//! `#[Histograms: 2]` and `#[Exact: transaction count=… sum_ns=… max_ns=…]`.

use std::io::Read as _;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};
use loadline_model::Latencies;

/// ns per unit of Interval_Max: the other tools' default, ms.
const MAX_VALUE_DIVISOR: f64 = 1e6;
/// Limit of an unpacked histogram, bytes: far above loadline's largest (0.3 MiB).
const MAX_BYTES: u64 = 16 << 20;
const LEGEND: &str = "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";

/// Latencies of one kind in one window.
#[derive(Debug, Clone)]
pub struct Interval<'a> {
    /// Tag, which distinguishes it from others in the log: letters, digits and signs other than comma, blank, # and ".
    pub tag: String,
    /// Begin, from the begin of the log on.
    pub from: Duration,
    pub length: Duration,
    pub latencies: &'a Latencies,
}

/// The log of one test. `started` is the window start, `length` the length of the window.
pub(crate) fn write(
    title: &str,
    started: Option<SystemTime>,
    length: Duration,
    histograms: &[(String, Latencies)],
) -> Result<Vec<u8>, String> {
    let interval = |(name, latencies)| Interval { tag: String::clone(name), from: Duration::ZERO, length, latencies };
    histogram_log(title, started, &histograms.iter().map(|(name, l)| interval((name, l))).collect::<Vec<_>>())
}

/// A log of `intervals` that begins at `started`. `title` is a comment in its first line.
pub fn histogram_log(title: &str, started: Option<SystemTime>, intervals: &[Interval<'_>]) -> Result<Vec<u8>, String> {
    let text = |e: &dyn std::fmt::Display| format!("its histograms cannot be encoded: {e}");
    let mut log = Vec::new();
    let mut head = IntervalLogWriterBuilder::new();
    head.add_comment(&format!("[{title}]")).add_comment("[Histogram log format version 1.3]");
    if let Some(started) = started {
        // Intervals count from the base time.
        head.with_start_time(started).with_base_time(started);
    }
    head.add_comment(&format!("[Histograms: {}]", intervals.len()));
    head.begin_log_with(&mut log, &mut V2DeflateSerializer::new()).map_err(|e| text(&e))?;
    log.extend_from_slice(LEGEND.as_bytes());

    let mut body = IntervalLogWriterBuilder::new();
    body.with_max_value_divisor(MAX_VALUE_DIVISOR);
    let mut serializer = V2DeflateSerializer::new();
    let mut body = body.begin_log_with(&mut log, &mut serializer).map_err(|e| text(&e))?;
    for Interval { tag: name, from, length, latencies } in intervals {
        let tag = if name.is_empty() || name.contains(['\t', '#', '"']) { None } else { Tag::new(name) };
        let tag = tag.ok_or_else(|| format!("'{name}' cannot be the name of a histogram"))?;
        let (count, sum, max) = (latencies.count(), latencies.sum_ns(), latencies.max_ns().unwrap_or(0));
        body.write_comment(&format!("[Exact: {name} count={count} sum_ns={sum} max_ns={max}]"))
            .map_err(|e| text(&e))?;
        body.write_histogram(latencies.histogram(), *from, *length, Some(tag)).map_err(|e| text(&e))?;
    }
    Ok(log)
}

/// Reads what [`histogram_log`] wrote, with exact sums and maxima. The error has the line (from 1) and what is wrong with it.
pub(crate) fn read(log: &[u8]) -> Result<Vec<(String, Latencies)>, (usize, String)> {
    let mut histograms: Vec<(String, Latencies)> = Vec::new();
    let mut announced: Option<usize> = None;
    let mut exact: Option<Exact> = None;
    let mut lines = 0;
    for (n, line) in log.split_inclusive(|b| *b == b'\n').enumerate() {
        lines = n + 1;
        let wrong = |what: String| (n + 1, what);
        if line.last() != Some(&b'\n') {
            return Err(wrong("the last line is incomplete: the file was cut off".to_owned()));
        }
        if let Some(comment) = line.strip_prefix(b"#[").map(String::from_utf8_lossy) {
            if let Some(number) = comment.strip_prefix("Histograms: ") {
                announced = number.trim_end().strip_suffix(']').and_then(|n| n.parse().ok());
            } else if let Some(rest) = comment.strip_prefix("Exact: ") {
                let parsed = Exact::parse(rest).ok_or_else(|| wrong("its exact sum cannot be read".to_owned()))?;
                exact = Some(parsed);
            }
        }
        for entry in IntervalLogIterator::new(line) {
            let entry = entry.map_err(|_| wrong("it is not a line of an HdrHistogram log".to_owned()))?;
            let LogEntry::Interval(interval) = entry else { continue };
            let histogram = decode(interval.encoded_histogram()).map_err(wrong)?;
            let name = interval.tag().map_or(String::new(), |t| t.as_str().to_owned());
            let latencies = match exact.take() {
                Some(exact) if exact.name != name => {
                    return Err(wrong(format!("the exact sum before it belongs to '{}'", exact.name)));
                }
                Some(exact) if exact.count != histogram.len() => {
                    let (has, said) = (histogram.len(), exact.count);
                    return Err(wrong(format!("it has {has} latencies, but {said} were recorded")));
                }
                Some(exact) => exact.restore(&histogram),
                None => return Err(wrong("no exact sum is before it".to_owned())),
            };
            histograms.push((name, latencies));
        }
    }
    match announced {
        Some(announced) if announced != histograms.len() => {
            Err((lines, format!("it has {} histograms, but {announced} were written", histograms.len())))
        }
        _ => Ok(histograms),
    }
}

/// Exact values that buckets lose.
struct Exact {
    name: String,
    count: u64,
    sum_ns: u128,
    max_ns: u64,
}

impl Exact {
    fn parse(text: &str) -> Option<Exact> {
        let mut words = text.trim_end().strip_suffix(']')?.split(' ');
        let exact = Exact {
            name: words.next()?.to_owned(),
            count: words.next()?.strip_prefix("count=")?.parse().ok()?,
            sum_ns: words.next()?.strip_prefix("sum_ns=")?.parse().ok()?,
            max_ns: words.next()?.strip_prefix("max_ns=")?.parse().ok()?,
        };
        words.next().is_none().then_some(exact)
    }

    /// The original latencies: the buckets with the exact sum and maximum.
    fn restore(&self, histogram: &Histogram<u64>) -> Latencies {
        let mut latencies = Latencies::new();
        for value in histogram.iter_recorded() {
            latencies.record_bucket(value.value_iterated_to(), value.count_at_value());
        }
        latencies.add_sum(self.sum_ns, self.max_ns);
        latencies
    }
}

/// Decodes a histogram in V2, compressed, and base64. Unpacks the zlib stream itself, because the histogram crate
/// neither limits its size nor verifies its checksum.
fn decode(base64: &str) -> Result<Histogram<u64>, String> {
    const COMPRESSED: [u8; 4] = [0x1c, 0x84, 0x93, 0x14];
    let packed = base64::engine::general_purpose::STANDARD
        .decode(base64)
        .map_err(|e| format!("its histogram is not valid base64: {e}"))?;
    let rest = packed.strip_prefix(&COMPRESSED).ok_or("its histogram is not packed as loadline packs it")?;
    let (length, stream) = rest.split_first_chunk::<4>().ok_or("its histogram is cut off")?;
    if usize::try_from(u32::from_be_bytes(*length)) != Ok(stream.len()) {
        return Err("its histogram is cut off".to_owned());
    }
    let mut plain = Vec::new();
    let unpacked = flate2::read::ZlibDecoder::new(stream).take(MAX_BYTES).read_to_end(&mut plain);
    unpacked.map_err(|e| format!("its histogram cannot be unpacked: {e}"))?;
    // Header: cookie, payload length, …; 40 bytes.
    let payload = plain.get(40..).ok_or("its histogram is cut off")?;
    let length = plain.get(4..8).and_then(|b| b.try_into().ok()).map(u32::from_be_bytes);
    if length.map(usize::try_from) != Some(Ok(payload.len())) {
        return Err("its histogram is cut off".to_owned());
    }
    // The crate negates run lengths without a check; no valid histogram has such a long run or count.
    if payload.windows(8).any(|w| w.iter().all(|b| *b >= 0x80)) {
        return Err("its histogram has an impossible count".to_owned());
    }
    Deserializer::new().deserialize(&mut plain.as_slice()).map_err(|e| format!("its histogram cannot be read: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write as _;
    use std::time::UNIX_EPOCH;

    fn filled(values: &[u64]) -> Latencies {
        let mut l = Latencies::new();
        values.iter().for_each(|v| l.record(*v));
        l
    }

    fn log(values: &[u64]) -> Vec<u8> {
        let pair = [("transaction".to_owned(), filled(values)), ("commit".to_owned(), Latencies::new())];
        write("run r, test 1", Some(UNIX_EPOCH + Duration::from_secs(10)), Duration::from_secs(30), &pair).unwrap()
    }

    #[test]
    fn it_looks_as_the_java_writer_writes_it() {
        let text = String::from_utf8(log(&[2_500_000])).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..6],
            [
                "#[run r, test 1]",
                "#[Histogram log format version 1.3]",
                "#[Histograms: 2]",
                "#[StartTime: 10.000 (seconds since epoch)]",
                "#[BaseTime: 10.000 (seconds since epoch)]",
                "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"",
            ]
        );
        assert_eq!(lines[6], "#[MaxValueDivisor: 1000000.000]");
        assert_eq!(lines[7], "#[Exact: transaction count=1 sum_ns=2500000 max_ns=2500000]");
        // 2.5 ms in ms, as the end of its bucket; then zlib's V2 cookie in base64.
        assert!(lines[8].starts_with("Tag=transaction,0.000,30.000,2.501,HISTFA"), "{}", lines[8]);
    }

    /// Every prefix but the whole is refused, never read as less than it was.
    #[test]
    fn no_cut_is_taken_for_the_whole() {
        let log = log(&[1, 1000, 2_000_000, 77_000_000_000]);
        for length in 0..log.len() {
            let outcome = read(&log[..length]);
            let before_the_header =
                length == 0 || log[..length].iter().filter(|b| **b == b'\n').count() < 3 && log[length - 1] == b'\n';
            assert!(outcome.is_err() || (before_the_header && outcome.unwrap().is_empty()), "cut at {length}");
        }
        assert!(read(&log).is_ok());
    }

    /// A few bits (the padding of the packed stream) carry nothing; any other change is found.
    #[test]
    fn a_changed_byte_of_a_histogram_is_found() {
        let values: Vec<u64> = (1..2000).map(|i| i * 7919).collect();
        let log = log(&values);
        let text = String::from_utf8(log.clone()).unwrap();
        let start = text.find(",HISTFA").unwrap() + 1;
        let end = start + text[start..].find('\n').unwrap();
        let line = text[..start].lines().count();
        for at in start..end {
            let mut broken = log.clone();
            broken[at] = if broken[at] == b'A' { b'B' } else { b'A' };
            match read(&broken) {
                Err((n, _)) => assert_eq!(n, line, "byte {at}"),
                Ok(same) => assert_eq!(same[0].1.histogram(), filled(&values).histogram(), "byte {at}"),
            }
        }
    }

    proptest! {
        #[test]
        fn latencies_read_back_exactly(values in prop::collection::vec(0u64..2 * loadline_model::histogram::HIGHEST_NS, 0..200)) {
            let written = filled(&values);
            let pair = [("response".to_owned(), written.clone())];
            let log = write("t", None, Duration::from_millis(1500), &pair).unwrap();
            let read = read(&log).unwrap();
            prop_assert_eq!(read.len(), 1);
            prop_assert_eq!(&read[0].0, "response");
            let back = &read[0].1;
            prop_assert_eq!(back.histogram(), written.histogram());
            prop_assert_eq!((back.count(), back.sum_ns(), back.max_ns()), (written.count(), written.sum_ns(), written.max_ns()));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes);
            let mut line = b"Tag=t,0.0,1.0,1.0,".to_vec();
            let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            zlib.write_all(&[&[0x1c, 0x84, 0x93, 0x13][..], &bytes].concat()).unwrap();
            let stream = zlib.finish().unwrap();
            let length = u32::try_from(stream.len()).unwrap().to_be_bytes();
            let packed = [&[0x1c, 0x84, 0x93, 0x14][..], &length, &stream].concat();
            line.extend_from_slice(base64::engine::general_purpose::STANDARD.encode(&packed).as_bytes());
            line.push(b'\n');
            let _ = read(&line);
        }
    }
}
